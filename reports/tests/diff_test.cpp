// What `kvcts report diff` calls worse, better and neither.
#include "reports/diff.h"

#include <gtest/gtest.h>

#include <limits>

namespace kvcts {
namespace {

case_result passed_case(const std::string& name) {
  case_result c;
  c.kernel = "mxfp4_q_quant";
  c.name = name;
  c.source = "built-in";
  c.bytes_compared = 100;
  c.output_digests["q_packed"] = std::string(64, 'a');
  return c;
}

accuracy_row row_of(double db) {
  accuracy_row row;
  row.argument = "q_packed";
  row.values = 10;
  row.sqnr_db = db;
  row.worst_relative = 0.2;
  return row;
}

run_result a_report() {
  run_result r;
  r.candidate = "cpu";
  r.candidate_version = "1";
  r.profile = "nvidia";
  r.level = "acceptance";
  r.verdict = "conforms: 3 cases, 300 bytes compared, 0 differ";
  r.suite_digest = std::string(64, '0');
  r.suite_version = 1;
  for (const char* name : {"a", "b", "c"}) {
    r.cases.push_back(passed_case(name));
    r.cases.back().accuracy.push_back(row_of(18));
  }
  r.environment["time"] = "1";
  r.speed = speed_table{"cuda", "H200", "", 4, {{"op", "T=1", 10, 2.0, 0.9, 0.8}}};
  r.adequacy = adequacy_score{2, 3, 3, {}};
  return r;
}

using lines = std::vector<std::string>;

TEST(report_diff, of_the_same_run_at_another_time_is_empty) {
  run_result later = a_report();
  later.environment["time"] = "2";
  for (case_result& c : later.cases) c.seconds = 7;
  const report_difference d = difference_of(a_report(), later);
  EXPECT_TRUE(d.none());
  EXPECT_EQ(text_of(d), "no difference\n");
}

TEST(report_diff, names_cases_that_fail_now) {
  run_result after = a_report();
  after.cases[0].what = after.cases[2].what = outcome::failed;
  after.cases[0].bytes_different = after.cases[2].bytes_different = 5;
  after.cases[1].what = outcome::timed_out;
  after.verdict = "does not conform: 2 of 3 cases differ (10 bytes)";
  const report_difference d = difference_of(a_report(), after);
  EXPECT_EQ(d.worse, (lines{"verdict: \"conforms: 3 cases, 300 bytes compared, 0 differ\" before, "
                            "\"does not conform: 2 of 3 cases differ (10 bytes)\" now",
                            "mxfp4_q_quant: passed before, failed now: 2 cases (a, c)",
                            "mxfp4_q_quant: passed before, timed out now: 1 case (b)"}));
  EXPECT_TRUE(d.better.empty());
  EXPECT_EQ(difference_of(after, a_report()).better.size(), 3u);
  EXPECT_TRUE(difference_of(after, a_report()).worse.empty());
}

TEST(report_diff, counts_bytes_of_cases_that_failed_before) {
  run_result before = a_report();
  run_result after = a_report();
  before.cases[0].what = after.cases[0].what = outcome::failed;
  before.cases[0].bytes_different = 5;
  after.cases[0].bytes_different = 6;
  EXPECT_EQ(difference_of(before, after).worse,
            (lines{"mxfp4_q_quant: more bytes differ: 1 case (a)"}));
  EXPECT_EQ(difference_of(after, before).better,
            (lines{"mxfp4_q_quant: fewer bytes differ: 1 case (a)"}));
}

TEST(report_diff, names_cases_that_are_gone_or_new) {
  run_result fewer = a_report();
  fewer.cases.pop_back();
  EXPECT_EQ(difference_of(a_report(), fewer).worse, (lines{"mxfp4_q_quant: gone: 1 case (c)"}));
  EXPECT_EQ(difference_of(fewer, a_report()).better,
            (lines{"mxfp4_q_quant: new, passed: 1 case (c)"}));
  run_result failing = a_report();
  failing.cases[2].what = outcome::crashed;
  EXPECT_EQ(difference_of(fewer, failing).worse,
            (lines{"mxfp4_q_quant: new, crashed: 1 case (c)"}));
  run_result many = a_report();
  for (char name = 'd'; name < 'j'; ++name) many.cases.push_back(passed_case({name}));
  EXPECT_EQ(difference_of(many, a_report()).worse,
            (lines{"mxfp4_q_quant: gone: 6 cases (d, e, f and 3 more)"}));
}

TEST(report_diff, does_not_confuse_a_file_s_case_with_a_built_in_one) {
  run_result before = a_report();
  run_result after = a_report();
  before.cases[1].name = after.cases[1].name = "a";
  before.cases[1].source = "/here/golden/q.h5";
  after.cases[1].source = "/there/golden/q.h5";
  after.cases[1].what = outcome::failed;
  EXPECT_EQ(difference_of(before, after).worse.size(), 1u);
  EXPECT_TRUE(difference_of(before, before).none());
}

TEST(report_diff, tells_accuracy_by_case) {
  run_result after = a_report();
  after.cases[1].accuracy[0].sqnr_db = 12.5;
  after.cases[2].accuracy[0].worst_relative = 0.5;
  EXPECT_EQ(
      difference_of(a_report(), after).worse,
      (lines{"mxfp4_q_quant, q_packed: larger worst relative error: 1 case (c)",
             "mxfp4_q_quant, q_packed: lower SQNR in dB: 1 case (b: 18.00 before, 12.50 now)"}));
  EXPECT_EQ(difference_of(after, a_report()).better.size(), 2u);
  run_result exact = a_report();
  exact.cases[0].accuracy[0].sqnr_db = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(difference_of(exact, exact).none());
  EXPECT_EQ(
      difference_of(exact, a_report()).worse,
      (lines{"mxfp4_q_quant, q_packed: lower SQNR in dB: 1 case (a: exact before, 18.00 now)"}));
}

TEST(report_diff, tells_speed_past_the_noise_and_adequacy) {
  run_result after = a_report();
  after.speed->rows[0].share_of_copy = 0.88;
  EXPECT_TRUE(difference_of(a_report(), after).none());
  after.speed->rows[0].share_of_copy = 0.6;
  after.adequacy->survivors = {"mxfp4_q_quant: e2m1_ties_away"};
  after.adequacy->pairs = 4;
  const report_difference d = difference_of(a_report(), after);
  EXPECT_EQ(d.worse, (lines{"speed of op, T=1: 0.900 of a copy before, 0.600 now",
                            "adequacy: survives now: mxfp4_q_quant: e2m1_ties_away"}));
  EXPECT_EQ(d.better, (lines{"adequacy: 3 pairs of a fault and a kernel tried before, 4 now"}));
}

TEST(report_diff, tells_other_inputs_apart_from_worse_ones) {
  run_result after = a_report();
  after.seed = 2;
  after.suite_version = 2;
  after.cases[0].output_digests["q_packed"] = std::string(64, 'b');
  const report_difference d = difference_of(a_report(), after);
  EXPECT_TRUE(d.worse.empty());
  EXPECT_EQ(d.other, (lines{"mxfp4_q_quant: passed both times, with other bytes: 1 case (a)",
                            "seed: 0 before, 2 now", "version of the suite: 1 before, 2 now"}));
}

}  // namespace
}  // namespace kvcts
