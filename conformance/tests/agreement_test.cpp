// Promises 1 and 2 on every case: the cpu candidate writes the reference's bytes, and the reference
// what hardware wrote.
#include <fmt/format.h>

#include "conformance/runner/run.h"
#include "conformance/runner/vector_check.h"
#include "conformance/tests/tools.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

const std::string captured = KVCTS_SOURCE_DIR "/vectors/captured/triton_h200_a.h5";

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

struct agreement_case {
  const char* kernel;
  profile rules;
};
class agreement : public ::testing::TestWithParam<agreement_case> {};
INSTANTIATE_TEST_SUITE_P(
    all, agreement,
    ::testing::Values(agreement_case{"mxfp4_q_quant", profile::nvidia},
                      agreement_case{"mxfp4_q_quant", profile::ieee},
                      agreement_case{"quantize_and_insert_k_cache", profile::nvidia},
                      agreement_case{"quantize_and_insert_k_cache", profile::ieee}),
    [](const auto& info) {
      return fmt::format("{}_{}", info.param.kernel, name_of(info.param.rules));
    });

TEST_P(agreement, of_the_cpu_candidate_on_every_case) {
  const auto [kernel, rules] = GetParam();
  // One thread and several split the work differently.
  for (const int threads : {1, 3}) {
    const auto cpu = make_candidate("cpu", threads);
    run_options options;
    options.rules = rules;
    options.up_to = threads == 1 ? level::acceptance : level::smoke;
    const auto plan = plan_built_in(kernel_filter(kernel), options.up_to, 1, rules);
    const run_result result = run_suite(plan, *cpu, options);
    EXPECT_EQ(result.exit_status(true), 0) << failures_of(result);
    EXPECT_EQ(result.cases.size(), plan.size());
  }
}

TEST(agreement, of_every_instruction_set_that_this_machine_has) {
  const std::string best = cpu_target();
  for (const char* target : {"baseline", "avx2", "avx512"}) {
    try {
      set_cpu_target(target);
    } catch (const input_error&) {
      continue;
    }
    const auto cpu = make_candidate("cpu", 1);
    run_options options;
    options.up_to = level::smoke;
    const auto plan = plan_built_in(kernel_filter("mxfp4_q_quant,quantize_and_insert_k_cache"),
                                    level::smoke, 1, profile::nvidia);
    const run_result result = run_suite(plan, *cpu, options);
    EXPECT_EQ(result.candidate_version, target);
    EXPECT_EQ(result.exit_status(true), 0) << failures_of(result);
  }
  set_cpu_target(best);
}

TEST(captured, cases_are_reproduced_by_the_reference) {
  const vector_check check =
      check_vectors(captured, kernel_filter("mxfp4_q_quant,quantize_and_insert_k_cache"), 0);
  ASSERT_EQ(check.rows.size(), 2u);
  EXPECT_EQ(check.rows[0].cases, 6u);
  EXPECT_EQ(check.rows[1].cases, 12u);
  EXPECT_EQ(check.rows[0].compared, 524736u);
  EXPECT_EQ(check.rows[1].compared, 1533184u);
  EXPECT_EQ(check.rows[0].different, 0u);
  EXPECT_EQ(check.rows[1].different, 0u);
}

TEST(captured, cases_are_passed_by_the_cpu_candidate) {
  const auto cpu = make_candidate("cpu", 2);
  const auto plan = plan_file(captured, kernel_filter("mxfp4_q_quant,quantize_and_insert_k_cache"));
  ASSERT_EQ(plan.size(), 18u);
  const run_result result = run_suite(plan, *cpu, {});
  EXPECT_EQ(result.exit_status(true), 0) << failures_of(result);
  for (const case_result& c : result.cases) EXPECT_EQ(c.provenance, "captured");
}

}  // namespace
}  // namespace kvcts
