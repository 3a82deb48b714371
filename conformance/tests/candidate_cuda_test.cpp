// Candidates from outside that ask for device memory: on a GPU (label cuda; libraries and programs
// lie beside this one where it is carried to such a machine), and everywhere on a stand-in for the
// driver, which has host memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "conformance/candidate/candidate.h"
#include "conformance/candidate/library_in_process.h"
#include "conformance/runner/run.h"
#include "optimized/bench.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

std::string library(const std::string& name) {
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / (name + ".so");
  return fs::exists(beside) ? beside.string() : KVCTS_TEST_CANDIDATES "/" + name + ".so";
}

run_result run_library(const std::string& name, const std::string& kernels = "fused_layout") {
#ifndef KVCTS_REAL_DRIVER
  setenv("LD_LIBRARY_PATH", KVCTS_TEST_CANDIDATES "/stand_in", 1);
#endif
  if (!fs::exists(fs::read_symlink("/proc/self/exe").parent_path() / "kvcts_worker")) {
    setenv("KVCTS_WORKER", KVCTS_WORKER_PROGRAM, 1);
  }
  const auto subject = make_candidate(library(name), 0, 60);
  run_options options;
  options.up_to = level::smoke;
  return run_suite(plan_built_in(kernel_filter(kernels), level::smoke, 1, profile::nvidia),
                   *subject, options);
}

int count_of(const run_result& result, outcome what) {
  int count = 0;
  for (const case_result& c : result.cases) count += c.what == what;
  return count;
}

std::string words_of(const run_result& result) {
  std::string words;
  for (const case_result& c : result.cases) {
    words += c.message + "\n";
    for (const difference& d : c.places) words += d.argument + ": " + d.place + "\n";
  }
  return words;
}

TEST(cuda_candidate_from_outside, conforms) {
  const run_result result = run_library("cuda_conforms");
  EXPECT_EQ(count_of(result, outcome::passed), 24) << words_of(result);
  EXPECT_EQ(result.environment.at("candidate memory"), "CUDA");
}

TEST(cuda_candidate_from_outside, a_write_behind_an_output_is_told) {
  const run_result result = run_library("cuda_writes_behind");
  EXPECT_EQ(count_of(result, outcome::passed), 18) << words_of(result);
  EXPECT_EQ(count_of(result, outcome::failed), 6);
  EXPECT_NE(
      words_of(result).find("y: guard byte 100 after the buffer (must not change): 2 bytes differ"),
      std::string::npos)
      << words_of(result);
}

TEST(cuda_candidate_from_outside, a_write_to_an_input_is_told) {
  const run_result result = run_library("cuda_writes_input");
  EXPECT_EQ(count_of(result, outcome::passed), 18) << words_of(result);
  EXPECT_NE(words_of(result).find("an input: must not change"), std::string::npos)
      << words_of(result);
}

// A device error stays: the cases behind it pass only in another process.
TEST(cuda_candidate_from_outside, a_device_error_is_told_and_the_run_goes_on) {
  const run_result result = run_library("cuda_faults");
  EXPECT_EQ(count_of(result, outcome::passed), 18) << words_of(result);
  EXPECT_EQ(count_of(result, outcome::crashed), 6);
  EXPECT_NE(words_of(result).find("CUDA: the candidate's work: "), std::string::npos)
      << words_of(result);
}

#ifdef KVCTS_REAL_DRIVER
const vs_row& vs_of(const std::vector<cuda_bench_row>& rows, const std::string& op) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const cuda_bench_row& row) { return row.op == op; });
  return found->vs.value();
}

TEST(cuda_bench_vs, measures_a_library_and_goes_on_where_it_does_not_work) {
  const library_in_process second(library("cuda_measured"), KVCTS_CUDA);
  bench_choice choice;
  choice.wanted = [](std::string_view kernel) {
    return kernel == "fused_layout" || kernel == "mxfp4_q_quant" ||
           kernel == "compute_global_topk_indices_and_lens" ||
           kernel == "combine_topk_swa_indices" ||
           kernel == "build_flashinfer_mixed_sparse_indices";
  };
  choice.vs = &second;
  const std::vector<cuda_bench_row> rows = bench_cuda(choice);
  for (const cuda_bench_row& row : rows) {
    EXPECT_GT(row.time_us, 0) << row.op;
    const vs_row& vs = row.vs.value();
    if (vs.answer.state != vs_state::measured) continue;
    EXPECT_GT(vs.time_us, 0) << row.op;
    EXPECT_DOUBLE_EQ(vs.share_of_copy, row.copy_us / vs.time_us);
    EXPECT_DOUBLE_EQ(vs.ratio, vs.time_us / row.time_us);
  }
  EXPECT_EQ(vs_of(rows, "fused_layout q").answer.state, vs_state::measured);
  EXPECT_TRUE(vs_of(rows, "fused_layout q").differing.empty());
  EXPECT_EQ(vs_of(rows, "fused_layout o").differing, std::vector<std::string>{"y"});
  const vs_row& failed = vs_of(rows, "fused_layout o_chunk");
  EXPECT_EQ(failed.answer.state, vs_state::failed);
  EXPECT_EQ(failed.answer.message, "no shared memory left");
  const vs_row& wrong = vs_of(rows, "mxfp4_q_quant");
  EXPECT_EQ(wrong.differing, (std::vector<std::string>{"q_packed", "q_scale", "weights"}));
  EXPECT_TRUE(wrong.queued);
  const vs_row& waiting = vs_of(rows, "compute_global_topk_indices_and_lens");
  EXPECT_EQ(waiting.answer.state, vs_state::measured);
  EXPECT_FALSE(waiting.queued);
  EXPECT_EQ(vs_of(rows, "combine_topk_swa_indices").answer.state, vs_state::not_claimed);
  EXPECT_EQ(vs_of(rows, "combine_topk_swa_indices").answer.message, "no windows");
  EXPECT_EQ(vs_of(rows, "build_flashinfer_mixed_sparse_indices").answer.state,
            vs_state::not_claimed);

  const cuda_decode decode = bench_cuda_decode(choice);
  ASSERT_EQ(decode.rows.size(), 12u);
  for (const cuda_decode_row& row : decode.rows) {
    EXPECT_GT(row.time_us, 0) << row.op;
    const vs_row& vs = row.vs.value();
    if (row.op == "mxfp4_q_quant") {
      EXPECT_EQ(vs.answer.state, vs_state::measured) << vs.answer.message;
      EXPECT_GT(vs.time_us, 0);
      EXPECT_DOUBLE_EQ(vs.ratio, vs.time_us / row.time_us);
    } else if (row.op == "compute_global_topk_indices_and_lens") {
      EXPECT_EQ(vs.answer.state, vs_state::not_captured);
      EXPECT_EQ(vs.answer.message, "cannot wait");
    } else {
      EXPECT_EQ(vs.answer.state, vs_state::not_claimed) << row.op;
    }
  }
}
#endif

#ifndef KVCTS_REAL_DRIVER
TEST(cuda_candidate_from_outside, every_kernel_passes_through_device_memory) {
  const run_result result = run_library("reference_cuda", "");
  EXPECT_EQ(count_of(result, outcome::passed), static_cast<int>(result.cases.size()))
      << words_of(result);
}

TEST(cuda_candidate_from_outside, caches_with_holes_pass_through_device_memory) {
  setenv("LD_LIBRARY_PATH", KVCTS_TEST_CANDIDATES "/stand_in", 1);
  setenv("KVCTS_WORKER", KVCTS_WORKER_PROGRAM, 1);
  std::vector<planned_case> plan = plan_built_in(kernel_filter("mxfp4_k_norm_quant_insert"),
                                                 level::exhaustive, 1, profile::nvidia);
  plan.erase(std::remove_if(plan.begin(), plan.end(),
                            [](const planned_case& c) { return c.name != "past2g_pages_d128"; }),
             plan.end());
  ASSERT_EQ(plan.size(), 1u);
  const auto subject = make_candidate(library("reference_cuda"), 0, 60);
  const run_result result = run_suite(plan, *subject, run_options());
  EXPECT_EQ(result.cases[0].what, outcome::passed) << words_of(result);
}
#endif

}  // namespace
}  // namespace kvcts
