// The runner sees every stray write, whatever its value, and tells outcomes apart.
#include "conformance/runner/run.h"

#include <functional>
#include <stdexcept>

#include "conformance/runner/guarded.h"
#include "conformance/tests/tools.h"
#include "reference/kernels/kernels.h"

namespace kvcts {
namespace {

using testing_tools::case_named;

// The reference, then something more.
class tampering : public candidate {
 public:
  explicit tampering(std::function<void(const call&)> more) : more_(std::move(more)) {}
  std::string name() const override { return "tampering"; }
  std::string version() const override { return "1"; }
  bool supports(std::string_view kernel) const override { return kernel != unsupported; }
  void run(const call& c, profile p) override {
    reference_of(c.kernel)(c, rules_for(p));
    more_(c);
  }
  std::string unsupported;

 private:
  std::function<void(const call&)> more_;
};

case_result run_insert(std::function<void(const call&)> more,
                       const std::string& name = "n14_s11_b3_r584_mixed_gap1168_rows8_guard_neg") {
  for (const case_spec& spec : cases_of("quantize_and_insert_k_cache", level::acceptance, 1)) {
    if (spec.name != name) continue;
    tampering subject(std::move(more));
    return run_case(spec.build(), subject, profile::nvidia);
  }
  throw std::runtime_error("no case " + name);
}

case_result run_query(std::function<void(const call&)> more) {
  tampering subject(std::move(more));
  test_case c = case_named("mxfp4_q_quant", "t7_h3_p3_mixed_strided_wf32_wgap2");
  c.expected.clear();
  return run_case(c, subject, profile::nvidia);
}

TEST(runner, passes_the_reference) {
  const case_result result = run_insert([](const call&) {});
  EXPECT_EQ(result.what, outcome::passed);
  EXPECT_EQ(result.bytes_different, 0u);
  EXPECT_TRUE(result.places.empty());
  EXPECT_EQ(result.output_digests.size(), 1u);
  // Both canaries' buffers, and the inputs.
  EXPECT_GT(result.bytes_compared, 2 * (11u * 584));
}

}  // namespace
}  // namespace kvcts
