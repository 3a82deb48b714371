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

TEST(report_diff, matches_cases_of_files_with_other_names) {
  run_result before = a_report();
  run_result after = a_report();
  for (case_result& c : before.cases) c.source = "/here/a.h5";
  for (case_result& c : after.cases) c.source = "/here/b.h5";
  const report_difference d = difference_of(before, after);
  EXPECT_TRUE(d.worse.empty() && d.better.empty());
  EXPECT_EQ(d.other, (lines{"mxfp4_q_quant: file: a.h5 before, b.h5 now: 3 cases (a, b, c)"}));
}

TEST(report_diff, has_a_line_for_whatever_differs) {
  run_result base = a_report();
  base.cases[2].name = "a";  // twice under one name
  base.sweeps.push_back({"e4m3", "", 256, 256, 0, 0, "", 1});
  base.diagnoses.push_back({"mxfp4_q_quant", "a", 5, {}});
  const std::pair<const char*, void (*)(run_result&)> changes[] = {
      {"verdict: ", [](run_result& r) { r.verdict += ", 1 of 17 kernels chosen"; }},
      {"provenance: ", [](run_result& r) { r.cases[0].provenance = "captured"; }},
      {"flags: none before, Past2GiB now", [](run_result& r) { r.cases[1].flags = {"Past2GiB"}; }},
      {"version of the profile: ", [](run_result& r) { r.profile_rules += 1; }},
      {"kernels claimed: 0 of 0 before, 1 of 0 now", [](run_result& r) { r.kernels_claimed = 1; }},
      {"another count of bytes compared", [](run_result& r) { r.cases[1].bytes_compared = 1; }},
      {"another message", [](run_result& r) { r.cases[1].message = "m"; }},
      {"accuracy measured before, not now", [](run_result& r) { r.cases[1].accuracy.clear(); }},
      {"adequacy: tried before, not now", [](run_result& r) { r.adequacy.reset(); }},
      {"measured before, not now", [](run_result& r) { r.speed->rows.clear(); }},
      {"diagnosed before: ", [](run_result& r) { r.diagnoses.clear(); }},
      {"sweep e4m3: 256 inputs before, 255 now", [](run_result& r) { r.sweeps[0].inputs = 255; }},
      {"with other bytes",
       [](run_result& r) { r.cases[2].output_digests["q_packed"] = std::string(64, 'b'); }},
  };
  EXPECT_TRUE(difference_of(base, base).none());
  for (const auto& [words, change] : changes) {
    run_result after = base;
    change(after);
    const report_difference d = difference_of(base, after);
    ASSERT_EQ(d.other.size(), 1u) << words << "\n" << text_of(d);
    EXPECT_NE(d.other[0].find(words), std::string::npos) << d.other[0];
    EXPECT_TRUE(d.worse.empty() && d.better.empty()) << text_of(d);
    EXPECT_FALSE(difference_of(after, base).none()) << words;
  }
}

TEST(report_diff, knows_what_is_worse_of_verdicts_and_sweeps) {
  const run_result full = a_report();
  run_result waived = a_report(), failing = a_report();
  waived.verdict = "conforms with waivers (1): 2 cases, 200 bytes compared, 0 differ";
  failing.verdict = "does not conform: 1 of 3 cases differ (5 bytes)";
  EXPECT_EQ(difference_of(full, waived).worse.size(), 1u);
  EXPECT_EQ(difference_of(waived, full).better.size(), 1u);
  EXPECT_EQ(difference_of(waived, failing).worse.size(), 1u);
  EXPECT_EQ(difference_of(failing, waived).other.size(), 1u);
  EXPECT_TRUE(difference_of(failing, waived).better.empty());

  run_result swept = a_report(), wrong = a_report();
  swept.sweeps.push_back({"e4m3", "", 256, 256, 0, 0, "", 1});
  wrong.sweeps.push_back({"e4m3", "", 256, 256, 3, 0, "code 7", 1});
  EXPECT_EQ(difference_of(swept, wrong).worse, (lines{"sweep e4m3: 0 mismatches before, 3 now"}));
  EXPECT_EQ(difference_of(wrong, swept).better.size(), 1u);
  EXPECT_EQ(difference_of(swept, full).worse, (lines{"sweep e4m3: gone"}));
  EXPECT_EQ(difference_of(full, wrong).worse, (lines{"sweep e4m3: new, 3 mismatches"}));
}

TEST(report_diff, prints_lines_that_nothing_forges) {
  run_result after = a_report();
  after.candidate = "cpu\nnothing got worse\x1b[2J\xff\xc2\x9b \xe2\x80\xae\xc3\xbc";
  const std::string text = text_of(difference_of(a_report(), after));
  EXPECT_NE(text.find("now\n"), std::string::npos);
  EXPECT_NE(
      text.find("cpu\\x0anothing got worse\\x1b[2J\\xff\\xc2\\x9b \\xe2\\x80\\xae\xc3\xbc now\n"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace kvcts
