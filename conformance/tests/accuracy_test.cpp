// Accuracy against values that can be told by hand, and of candidates that are off; and what makes
// two reports comparable.
#include "conformance/accuracy/accuracy.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "reference/formats/bf16.h"
#include "reference/kernels/kernels.h"
#include "vectors/version.h"

namespace kvcts {
namespace {

const std::string captured = KVCTS_SOURCE_DIR "/vectors/captured/triton_h200_a.h5";
constexpr double exactly = std::numeric_limits<double>::infinity();

TEST(error_sums, of_known_errors) {
  error_sums sums;
  EXPECT_TRUE(sums.empty());
  sums.add({2, 2, 2, 2}, {{2.5, false, true}, {1.5, false, false}, {2.5}, {2.5}});
  const accuracy_row row = sums.result();
  EXPECT_EQ(row.values, 4u);
  EXPECT_DOUBLE_EQ(row.sqnr_db, 10 * std::log10(16.0));
  EXPECT_DOUBLE_EQ(row.worst_relative, 0.25);
  EXPECT_DOUBLE_EQ(row.saturated, 0.25);
}

TEST(error_sums, of_exact_subnormal_and_non_finite_numbers) {
  error_sums sums;
  sums.add({-3, NAN, 1, INFINITY}, {{-3}, {1}, {NAN}, {448, false, true}});
  EXPECT_EQ(sums.result().values, 1u);
  EXPECT_EQ(sums.result().sqnr_db, exactly);
  EXPECT_EQ(sums.result().worst_relative, 0);
  EXPECT_EQ(sums.result().saturated, 0);
  error_sums small;
  small.add({1e-9, 4}, {{0, true, false}, {4}});  // its relative error of 1 says nothing
  EXPECT_EQ(small.result().worst_relative, 0);
  EXPECT_LT(small.result().sqnr_db, exactly);
  error_sums nothing;
  nothing.add({0}, {{1}});
  EXPECT_EQ(nothing.result().sqnr_db, -10000);
}

// Nine rows with one error each are not hidden by one of huge numbers, nor by one that is wrong.
TEST(error_sums, take_the_median_of_the_rows) {
  error_sums sums;
  sums.add({1e30, 1e30}, {{1e30}, {1e30}});
  for (int i = 0; i < 9; ++i) sums.add({2, 2}, {{2.5}, {2}});
  sums.add({1e30, 1e30}, {{0, true}, {0, true}});
  EXPECT_DOUBLE_EQ(sums.result().sqnr_db, 10 * std::log10(32.0));
  EXPECT_EQ(sums.result().values, 22u);
}

TEST(kernel_rows, take_medians_of_the_cases) {
  std::vector<case_result> cases;
  const auto add = [&](const char* argument, double db, std::uint64_t values, double saturated) {
    cases.emplace_back().kernel = "k";
    cases.back().accuracy = {{"", argument, values, db, db / 100, saturated}};
  };
  add("a", 50, 10, 1);
  add("b", exactly, 1, 0);
  add("a", 0, 10, 0);
  add("a", 20, 20, 0);
  const std::vector<accuracy_row> rows = rows_of_kernels(cases);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].argument, "a");
  EXPECT_EQ(rows[0].kernel, "k");
  EXPECT_EQ(rows[0].values, 40u);
  EXPECT_EQ(rows[0].sqnr_db, 20);
  EXPECT_EQ(rows[0].worst_relative, 0.2);
  EXPECT_EQ(rows[0].saturated, 0.25);
  EXPECT_EQ(rows[1].sqnr_db, exactly);
}

run_result run_plan(
    const std::vector<planned_case>& plan,
    std::function<void(const call&)> more = [](const call&) {}) {
  testing_tools::tampering subject(std::move(more));
  run_options options;
  options.diagnose_seconds = 0;
  return run_suite(plan, subject, options);
}

accuracy_row row_of(const std::vector<accuracy_row>& rows, std::string_view argument) {
  for (const accuracy_row& row : rows) {
    if (row.argument == argument) return row;
  }
  ADD_FAILURE() << "no row of " << argument;
  return {};
}
accuracy_row row_of(const run_result& result, std::string_view argument) {
  return row_of(result.accuracy, argument);
}

// A query whose element d of each block of 32 is value(d).
run_result run_query(const std::function<float(std::int64_t)>& value) {
  planned_case planned;
  planned.kernel = "mxfp4_q_quant";
  planned.name = "built";
  planned.source = "test";
  planned.load = [&] {
    test_case c = testing_tools::case_named("mxfp4_q_quant", "t2_h3_p4_ties");
    c.expected.clear();
    tensor_view q = testing_tools::input_of(c, "index_q").view();
    for (std::int64_t t = 0; t < q.dim(0); ++t) {
      for (std::int64_t h = 0; h < q.dim(1); ++h) {
        for (std::int64_t d = 0; d < 128; ++d) {
          store(q.element(t, h, d), encode_bf16(value(d % 32)));
        }
      }
    }
    return c;
  };
  return run_plan({planned});
}

TEST(accuracy, of_values_that_the_format_has) {
  const float codes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  const run_result result =
      run_query([&](std::int64_t d) { return d % 2 == 0 ? codes[d / 2 % 8] : -codes[d / 2 % 8]; });
  EXPECT_EQ(result.cases[0].what, outcome::passed);
  const accuracy_row row = row_of(result.cases[0].accuracy, "q_packed");
  EXPECT_EQ(row.values, 2u * 3 * 128);
  EXPECT_EQ(row.sqnr_db, exactly);
  EXPECT_EQ(row.worst_relative, 0);
  EXPECT_DOUBLE_EQ(row.saturated, 4.0 / 32);
  EXPECT_EQ(row_of(result, "q_packed").sqnr_db, exactly);
}

// One 6 that gives the scale 1, and 31 values of 1.25, halfway between two codes.
TEST(accuracy, of_a_block_with_one_known_error) {
  const accuracy_row row =
      row_of(run_query([](std::int64_t d) { return d == 9 ? 6.0F : 1.25F; }), "q_packed");
  EXPECT_DOUBLE_EQ(row.sqnr_db, 10 * std::log10((36 + 31 * 1.25 * 1.25) / (31 * 0.25 * 0.25)));
  EXPECT_DOUBLE_EQ(row.worst_relative, 0.2);
  EXPECT_DOUBLE_EQ(row.saturated, 1.0 / 32);
}

// What each stored form gets of the captured cases: a wrong address, scale or formula gives far
// less.
TEST(accuracy, of_the_reference_is_what_the_formats_allow) {
  const run_result result = run_plan(plan_file(captured, kernel_filter("")));
  const auto least_db = [](const std::string& argument) {
    const auto has = [&](const char* part) { return argument.find(part) != std::string::npos; };
    if (has("weights")) return 140;
    if (has("_normed") || has("(bf16)") || argument == "kv_out" || argument == "latent_out" ||
        argument == "out") {
      return 50;
    }
    return has("fp4") || argument == "q_packed" ? 15 : 28;
  };
  std::map<std::string, int> rows_of;
  for (const accuracy_row& row : result.accuracy) {
    ++rows_of[row.kernel];
    EXPECT_GT(row.sqnr_db, least_db(row.argument)) << row.kernel << " " << row.argument;
  }
  for (const kernel_contract* contract : contracts()) {
    EXPECT_EQ(has_accuracy(contract->name), rows_of.count(std::string(contract->name)) != 0)
        << contract->name;
  }
  EXPECT_EQ(rows_of.size(), 13u);
  EXPECT_EQ(rows_of["mxfp4_fused_prologue"], 4);
}

TEST(accuracy, shows_a_candidate_that_is_off) {
  const std::vector<planned_case> plan = plan_file(captured, kernel_filter("mxfp4_q_quant"));
  const auto change_bytes = [](const char* argument, std::byte (*change)(std::byte)) {
    return [=](const call& c) {
      const tensor_view& v = c.tensor(argument);
      for (std::size_t i = 0; i < v.storage_bytes; ++i) v.storage[i] = change(v.storage[i]);
    };
  };
  const double right = row_of(run_plan(plan), "q_packed").sqnr_db;
  // Scales of twice the size, and the two codes of a byte in the wrong order.
  const run_result doubled = run_plan(plan, change_bytes("q_scale", [](std::byte b) {
                                        return std::byte(std::to_integer<int>(b) + 1);
                                      }));
  const run_result swapped =
      run_plan(plan, change_bytes("q_packed", [](std::byte b) { return b >> 4 | b << 4; }));
  EXPECT_GT(right, 14);
  EXPECT_NEAR(row_of(doubled, "q_packed").sqnr_db, 0, 2);
  EXPECT_LT(row_of(swapped, "q_packed").sqnr_db, 3);
}

using testing_tools::run_program;
using testing_tools::scratch;

// A report but for what belongs to one run: times and the environment.
nlohmann::json comparable(const std::string& path) {
  std::ifstream in(path);
  nlohmann::json report = nlohmann::json::parse(in);
  report.erase("environment");
  report["totals"].erase("seconds");
  for (nlohmann::json& c : report["cases"]) c.erase("seconds");
  return report;
}

TEST(comparable_runs, give_the_same_report_whatever_the_threads) {
  const scratch folder;
  const std::string run =
      "run --kernels mxfp4_q_quant,fused_inv_rope_fp8_quant --vectors " + captured + " --report ";
  ASSERT_EQ(run_program(run + folder.path("a") + " --threads 1").status, 0);
  ASSERT_EQ(run_program(run + folder.path("b") + " --threads 3").status, 0);
  const std::string a = folder.path("a/report.json");
  const std::string b = folder.path("b/report.json");
  const nlohmann::json report = comparable(a);
  EXPECT_EQ(report, comparable(b));
  EXPECT_EQ(report["cases"].size(), 16u);
  EXPECT_GT(report["accuracy"].size(), 1u);
  for (const nlohmann::json& c : report["cases"]) EXPECT_GT(c["accuracy"].size(), 0u) << c["name"];
  EXPECT_EQ(report["suite_version"], suite_version);

  testing_tools::program_result same = run_program("report diff " + a + " " + b);
  EXPECT_EQ(same.status, 0);
  EXPECT_EQ(same.out, "no difference\n");

  const std::string fewer = folder.path("c/report.json");
  ASSERT_EQ(run_program(run + folder.path("c") + " --case 't*_h*'").status, 0);
  testing_tools::program_result worse = run_program("report diff " + a + " " + fewer);
  EXPECT_EQ(worse.status, 1);
  EXPECT_NE(worse.out.find("worse\n  fused_inv_rope_fp8_quant: gone: "), std::string::npos)
      << worse.out;
  testing_tools::program_result better = run_program("report diff " + fewer + " " + a);
  EXPECT_EQ(better.status, 0);
  EXPECT_NE(better.out.find("nothing got worse"), std::string::npos) << better.out;
  EXPECT_EQ(run_program("report diff " + a + " no_such.json").status, 2);
}

TEST(speed_of_a_report, comes_from_what_bench_wrote) {
  const scratch folder;
  const std::string run =
      "run --kernels mxfp4_q_quant --level smoke --report " + folder.path("a") + " --speed ";
  ASSERT_EQ(run_program(run + KVCTS_SOURCE_DIR "/reports/evidence/bench-h200.json").status, 0);
  std::ifstream in(folder.path("a/report.json"));
  const nlohmann::json speed = nlohmann::json::parse(in)["speed"];
  EXPECT_EQ(speed["device"], "NVIDIA H200");
  EXPECT_EQ(speed["rows"][0]["op"], "mxfp4_q_quant");
  std::ifstream recorded(KVCTS_SOURCE_DIR "/reports/evidence/bench-h200.json");
  EXPECT_EQ(speed["rows"][0]["share_of_copy"],
            nlohmann::json::parse(recorded)["rows"][0]["share_of_copy"]);
  const testing_tools::program_result bad =
      run_program(run + KVCTS_SOURCE_DIR "/reports/evidence/h200-ieee.json");
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("h200-ieee.json: is not what kvcts bench --json writes"),
            std::string::npos)
      << bad.err;
}

}  // namespace
}  // namespace kvcts
