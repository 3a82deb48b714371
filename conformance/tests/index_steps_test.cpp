// Index rows as the device makes them, steps of columns over the group's lanes, in vectors: the cpu
// candidate makes its own of runs of columns, and no GPU is here to run the others.
#define KVCTS_TARGET steps
#define KVCTS_VECTOR_BYTES 16
#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "optimized/kernels/build_flashinfer_mixed_sparse_indices.h"
#include "optimized/kernels/combine_topk_swa_indices.h"
#include "optimized/kernels/compute_global_topk_indices_and_lens.h"

namespace kvcts {
namespace {

// Words a lane: 4 where a device's rows are aligned, else 1.
template <int Words>
class index_steps : public candidate {
 public:
  std::string name() const override { return "index steps"; }
  std::string version() const override { return "1"; }
  bool supports(std::string_view kernel) const override {
    return kernel == "build_flashinfer_mixed_sparse_indices" ||
           kernel == "combine_topk_swa_indices" || kernel == "compute_global_topk_indices_and_lens";
  }
  void run(const call& c, profile /*p*/) override {
    if (c.kernel == "build_flashinfer_mixed_sparse_indices") {
      const auto a = build_flashinfer_mixed_sparse_indices_of(c);
      for (std::int64_t row = 0; row < a.tokens; ++row) {
        steps::sparse_row<steps::group, Words, false>(a, row);
      }
    } else if (c.kernel == "combine_topk_swa_indices") {
      const auto a = combine_topk_swa_indices_of(c);
      for (std::int64_t row = 0; row < combine_topk_swa_indices_rows(a); ++row) {
        steps::combine_row<steps::group, Words, false>(a, row);
      }
    } else {
      const auto a = compute_global_topk_indices_and_lens_of(c);
      for (std::int64_t row = 0; row < compute_global_topk_indices_and_lens_rows(a); ++row) {
        steps::global_topk_row<steps::group, Words, false>(a, row);
      }
    }
  }
};

void expect_the_reference_bytes(candidate& of) {
  run_options options;
  options.up_to = testing_tools::is_sanitized() ? level::smoke : level::acceptance;
  const auto plan = plan_built_in(kernel_filter("*indices*"), options.up_to, 1, profile::nvidia);
  const run_result result = run_suite(plan, of, options);
  EXPECT_GT(result.cases.size(), 10u);
  for (const case_result& c : result.cases) {
    EXPECT_EQ(c.what, outcome::passed) << c.kernel << "/" << c.name << " " << c.message;
  }
}

TEST(index_steps, of_one_word_write_the_reference_bytes) {
  index_steps<1> one;
  expect_the_reference_bytes(one);
}
TEST(index_steps, of_four_words_write_the_reference_bytes) {
  index_steps<4> four;
  expect_the_reference_bytes(four);
}

}  // namespace
}  // namespace kvcts
