// Promises 1 and 2 on every case: the cpu candidate writes the reference's bytes, and the reference
// what hardware wrote.
#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <tuple>

#include "conformance/runner/run.h"
#include "conformance/runner/vector_check.h"
#include "conformance/tests/tools.h"
#include "optimized/optimized.h"
#include "reference/contract/contract.h"
#include "reference/kernels/kernels.h"

namespace kvcts {
namespace {

const std::string captured = KVCTS_SOURCE_DIR "/vectors/captured/triton_h200_a.h5";
const std::string golden = KVCTS_SOURCE_DIR "/vectors/golden/";

std::string failures_of(const run_result& r) {
  std::string text = r.verdict;
  for (const case_result& c : r.cases) {
    if (c.what == outcome::passed) continue;
    text += fmt::format("\n{}/{} {}", c.kernel, c.name, c.message);
    for (const difference& d : c.places) {
      text +=
          fmt::format("\n  {}: {}: expected {}, got {}", d.argument, d.place, d.expected, d.got);
    }
  }
  return text;
}

// Every kernel that the cpu candidate has.
std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (const kernel_contract* contract : contracts()) {
    if (cpu_supports(contract->name)) names.emplace_back(contract->name);
  }
  return names;
}

class agreement : public ::testing::TestWithParam<std::tuple<std::string, profile>> {
 protected:
  void TearDown() override { set_cpu_target(best_); }

 private:
  std::string best_ = cpu_target();
};
INSTANTIATE_TEST_SUITE_P(all, agreement,
                         ::testing::Combine(::testing::ValuesIn(kernels()),
                                            ::testing::Values(profile::nvidia, profile::ieee)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              name_of(std::get<1>(info.param)));
                         });

TEST_P(agreement, of_the_cpu_candidate_on_every_case) {
  const auto& [kernel, rules] = GetParam();
  // One thread and several split the work differently.
  for (const int threads : {1, 3}) {
    const auto cpu = make_candidate("cpu", threads);
    run_options options;
    options.rules = rules;
    // Sanitizers are slow: the smoke level has every flag but those of size.
    const bool whole = threads == 1 && !testing_tools::is_sanitized();
    options.up_to = whole ? level::acceptance : level::smoke;
    const auto plan = plan_built_in(kernel_filter(kernel), options.up_to, 1, rules);
    const run_result result = run_suite(plan, *cpu, options);
    EXPECT_EQ(result.exit_status(true), 0) << failures_of(result);
    EXPECT_EQ(result.cases.size(), plan.size());
    EXPECT_FALSE(plan.empty());
  }
}

TEST_P(agreement, of_every_instruction_set_that_this_machine_has) {
  const auto& [kernel, rules] = GetParam();
  for (const char* target : {"baseline", "avx2", "avx512"}) {
    try {
      set_cpu_target(target);
    } catch (const input_error&) {
      continue;
    }
    const auto cpu = make_candidate("cpu", 1);
    run_options options;
    options.rules = rules;
    options.up_to = level::smoke;
    const auto plan = plan_built_in(kernel_filter(kernel), level::smoke, 1, rules);
    const run_result result = run_suite(plan, *cpu, options);
    EXPECT_EQ(result.candidate_version, target);
    EXPECT_EQ(result.exit_status(true), 0) << failures_of(result);
    EXPECT_FALSE(plan.empty());
  }
}

// A kernel is not there until all of it is.
TEST(every_contract, has_a_reference_a_cpu_kernel_cases_and_golden_files) {
  EXPECT_EQ(contracts().size(), 17u);
  for (const kernel_contract* contract : contracts()) {
    const std::string kernel(contract->name);
    EXPECT_NE(reference_of(kernel), nullptr) << kernel;
    EXPECT_TRUE(cpu_supports(kernel)) << kernel;
    EXPECT_FALSE(cases_of(kernel, level::smoke, 1).empty()) << kernel;
    for (const profile p : {profile::nvidia, profile::ieee}) {
      const std::string file = fmt::format("{}_{}.h5", kernel, name_of(p));
      EXPECT_TRUE(std::filesystem::exists(golden + file)) << file;
    }
  }
}

// Cases and compared bytes of each kernel in the captured file; fused_layout has none there.
struct captured_counts {
  std::string_view kernel;
  std::uint64_t cases, compared;
};
constexpr captured_counts counts[] = {
    {"build_flashinfer_mixed_sparse_indices", 3, 77956},
    {"combine_topk_swa_indices", 3, 92368},
    {"compute_global_topk_indices_and_lens", 2, 71352},
    {"dequantize_and_gather_k_cache", 6, 2767872},
    {"dsa_fused_prologue", 4, 1446112},
    {"fused_indexer_q_rope_quant", 10, 358224},
    {"fused_inv_rope_fp8_quant", 10, 578528},
    {"fused_q_kv_rmsnorm_quant", 5, 952320},
    {"fused_save_compress_norm", 6, 618496},
    {"indexer_k_norm_quant_insert", 6, 348480},
    {"indexer_k_norm_rope_store", 40, 398848},
    {"mxfp4_fused_prologue", 20, 3719360},
    {"mxfp4_k_norm_quant_insert", 30, 2153216},
    {"mxfp4_q_quant", 6, 524736},
    {"quantize_and_insert_k_cache", 12, 1533184},
    {"rope_quant_insert", 26, 2476544},
};

TEST(captured, cases_are_reproduced_by_the_reference) {
  const vector_check check = check_vectors(captured, kernel_filter("*"), 0);
  ASSERT_EQ(check.rows.size(), std::size(counts));
  for (std::size_t i = 0; i < check.rows.size(); ++i) {
    const vector_check::row& row = check.rows[i];
    EXPECT_EQ(row.kernel, counts[i].kernel);
    EXPECT_EQ(row.cases, counts[i].cases) << row.kernel;
    EXPECT_EQ(row.compared, counts[i].compared) << row.kernel;
    EXPECT_EQ(row.different, 0u) << row.kernel;
    EXPECT_TRUE(row.implemented) << row.kernel;
  }
}

TEST(captured, cases_are_passed_by_the_cpu_candidate) {
  const auto cpu = make_candidate("cpu", 2);
  for (const captured_counts& expected : counts) {
    if (!cpu_supports(expected.kernel)) continue;  // fails every_contract
    const auto plan = plan_file(captured, kernel_filter(expected.kernel));
    EXPECT_EQ(plan.size(), expected.cases) << expected.kernel;
    const run_result result = run_suite(plan, *cpu, {});
    EXPECT_EQ(result.exit_status(true), 0) << failures_of(result);
    for (const case_result& c : result.cases) EXPECT_EQ(c.provenance, "captured");
  }
}

}  // namespace
}  // namespace kvcts
