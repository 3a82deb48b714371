// The catalogue of faults: the smoke cases catch all of it, and a diagnosis names each fault.
#include "conformance/faults/adequacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "conformance/cases/smoke.h"
#include "conformance/faults/diagnosis.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using testing_tools::every_kernel;

TEST(fault_catalogue, is_wide_and_well_formed) {
  std::set<std::string_view> names;
  std::size_t pairs = 0;
  for (const fault& f : all_faults()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name << " is there twice";
    EXPECT_FALSE(f.text.empty()) << f.name;
    EXPECT_EQ(f.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), f.name.npos);
    std::set<std::string_view> kernels;
    for (const std::string_view kernel : f.kernels) {
      EXPECT_NE(find_contract(kernel), nullptr) << f.name << ": " << kernel;
      EXPECT_TRUE(kernels.insert(kernel).second) << f.name << ": " << kernel << " twice";
    }
    pairs += kernels.size();
  }
  EXPECT_GE(names.size(), 160u);
  EXPECT_GE(pairs, 640u);
}

TEST(fault_catalogue, stands_in_the_documentation) {
  std::ifstream file(std::string(KVCTS_SOURCE_DIR) + "/docs/faults.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\n" + fault_table()), text.npos)
      << "put the output of `kvcts adequacy --catalogue` in docs/faults.md";
}

constexpr const char* mend_smoke =
    "put the list that `kvcts adequacy --reduce` prints into conformance/cases/smoke.inc, build, "
    "and "
    "write the golden files again: docs/faults.md";

class adequacy_of : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(kernels, adequacy_of, ::testing::ValuesIn(every_kernel()),
                         [](const auto& info) { return info.param; });

TEST_P(adequacy_of, the_smoke_cases_is_complete) {
  const adequacy found = try_faults({.kernels = GetParam()});
  EXPECT_EQ(found.pairs(), faults_of(GetParam()).size());
  EXPECT_TRUE(found.not_tried.empty());
  for (const fault_trial& t : found.trials) {
    EXPECT_FALSE(t.catches.empty()) << t.what->name << " survives " << t.tried << " cases, profile "
                                    << name_of(t.rules) << ": " << mend_smoke;
  }
}

TEST(adequacy_report, misses_faults_without_their_flag) {
  const adequacy all = try_faults({.kernels = "mxfp4_q_quant"});
  EXPECT_EQ(all.survivors(), 0u);
  const adequacy less = try_faults({.kernels = "mxfp4_q_quant", .without_flag = "PaddedHeads"});
  std::set<std::string_view> survivors;
  for (const fault_trial& t : less.trials) {
    if (t.catches.empty()) survivors.insert(t.what->name);
  }
  EXPECT_EQ(survivors, (std::set<std::string_view>{"padded_heads_left"}));
  EXPECT_THROW(try_faults({.without_flag = "PaddedHead"}), input_error);
}

TEST(adequacy_report, of_a_file_leaves_out_what_it_cannot_hold) {
  const adequacy found =
      try_faults({.vectors = std::string(KVCTS_SOURCE_DIR) +
                             "/vectors/golden/quantize_and_insert_k_cache_nvidia.h5"});
  EXPECT_EQ(found.survivors(), 0u);
  EXPECT_EQ(found.not_tried.size(), 2u);  // past 2 GiB
}

// Outputs lie in a file by name, not as the contract has them: compared so, all would seem caught.
TEST(adequacy_report, of_one_case_of_a_file_says_what_survives) {
  suite s;
  s.cases.push_back(testing_tools::case_named("fused_q_kv_rmsnorm_quant",
                                              "t3_q96_kv33_hardsquares_ordinary_qf32_kvf32"));
  const testing_tools::scratch folder;
  write_vectors(folder.path("a.h5"), s);
  const adequacy found = try_faults({.vectors = folder.path("a.h5")});
  EXPECT_GT(found.survivors(), 0u);
  EXPECT_LT(found.survivors(), found.trials.size());
}

TEST(adequacy_report, reduces_without_loss) {
  const adequacy all =
      try_faults({.kernels = "mxfp4_q_quant", .candidates = true, .every_case = true});
  const auto chosen = reduced(all);
  EXPECT_LT(chosen.size(), all.cases.size() / 2);
  for (const fault_trial& t : all.trials) {
    EXPECT_TRUE(std::any_of(t.catches.begin(), t.catches.end(), [&](std::size_t c) {
      return chosen.count({all.cases[c].kernel, all.cases[c].name}) != 0;
    })) << t.what->name;
  }
}

// Cases 0 and 1 catch both of two faults; only in case 1 their bytes differ, if `wrote` says so.
adequacy two_faults(std::uint64_t wrote) {
  adequacy made;
  for (const char* name : {"a", "b"}) {
    made.cases.push_back({"mxfp4_q_quant", name, profile::nvidia, {"TieToEven"}});
  }
  for (const std::uint64_t last : {std::uint64_t{2}, wrote}) {
    fault_trial t;
    t.kernel = "mxfp4_q_quant";
    t.what = &all_faults()[made.trials.size()];
    t.catches = {0, 1};
    t.wrote = {1, last};
    made.trials.push_back(t);
  }
  return made;
}

TEST(adequacy_report, tells_faults_apart_by_their_bytes) {
  const adequacy apart = two_faults(3), same = two_faults(2);
  EXPECT_TRUE(alike(apart).empty());
  ASSERT_EQ(alike(same).size(), 1u);
  EXPECT_EQ(alike(same)[0].a, &same.trials[0]);
  EXPECT_EQ(alike(same)[0].b, &same.trials[1]);
  using names = std::set<std::pair<std::string, std::string>>;
  EXPECT_EQ(reduced(apart), (names{{"mxfp4_q_quant", "b"}}));
  EXPECT_EQ(reduced(same), (names{{"mxfp4_q_quant", "a"}}));
  adequacy one_misses = two_faults(2);
  one_misses.trials[1].catches = {0};
  one_misses.trials[1].wrote = {1};
  EXPECT_TRUE(alike(one_misses).empty());
  EXPECT_EQ(reduced(one_misses), (names{{"mxfp4_q_quant", "a"}, {"mxfp4_q_quant", "b"}}));
}

TEST(smoke_level, is_a_sorted_list_of_cases) {
  const auto list = smoke_list();
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end())) << mend_smoke;
  EXPECT_EQ(std::adjacent_find(list.begin(), list.end()), list.end()) << mend_smoke;
  std::size_t cases = 0;
  for (const std::string& kernel : every_kernel()) {
    cases += cases_of(kernel, level::smoke, 1).size();
  }
  EXPECT_EQ(cases, list.size()) << "names of no case: " << mend_smoke;
}

TEST_P(adequacy_of, the_smoke_cases_have_every_flag_of_their_candidates) {
  std::set<std::string> flags;
  for (const case_spec& c : smoke_candidates(GetParam(), 1)) {
    flags.insert(c.flags.begin(), c.flags.end());
  }
  for (const case_spec& c : cases_of(GetParam(), level::smoke, 1)) {
    for (const std::string& flag : c.flags) flags.erase(flag);
  }
  for (const std::string& flag : flags) ADD_FAILURE() << flag << ": " << mend_smoke;
}

// The smallest case that catches each fault, with the fault's bytes as the candidate's.
class diagnosis_of : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(kernels, diagnosis_of, ::testing::ValuesIn(every_kernel()),
                         [](const auto& info) { return info.param; });

observed_call observed(test_case c, const Rules& wrong, profile p) {
  observed_call made;
  made.kernel = c.kernel;
  made.name = c.name;
  made.attributes = c.attributes;
  made.rules = p;
  const kernel_contract& contract = contract_of(c.kernel);
  made.expected = expected_results(contract, c.attributes, c.inputs, canary, rules_for(p));
  made.got = expected_results(contract, c.attributes, c.inputs, canary, wrong);
  made.inputs = std::move(c.inputs);
  return made;
}

case_spec spec_named(const std::string& kernel, const std::string& name) {
  for (case_spec& spec : cases_of(kernel, level::acceptance, 1)) {
    if (spec.name == name) return spec;
  }
  throw input_error("no case " + name);
}

// What a run with the fault's rules shows: the cases of the level smoke, or those past 2 GiB.
examined_calls calls_under(const fault_trial& t, const adequacy& found) {
  examined_calls calls;
  for (std::size_t c = 0; c < found.cases.size(); ++c) {
    const adequacy_case& at = found.cases[c];
    const bool past_2gib = std::count(at.flags.begin(), at.flags.end(), "Past2GiB") != 0 ||
                           std::count(at.flags.begin(), at.flags.end(), "Past4GiB") != 0;
    if (at.rules != t.rules || past_2gib != t.what->past_2gib) continue;
    const bool fails = std::count(t.catches.begin(), t.catches.end(), c) != 0;
    (fails ? calls.failing : calls.passing).emplace_back([&t, &at] {
      return observed(spec_named(at.kernel, at.name).build(), rules_with(*t.what, t.rules),
                      t.rules);
    });
  }
  return calls;
}

// In each profile that a fault concerns.
TEST_P(diagnosis_of, each_fault_is_named_alone) {
  const adequacy found = try_faults({.kernels = GetParam(), .every_case = true});
  EXPECT_EQ(found.pairs(), faults_of(GetParam()).size());
  for (const fault_trial& t : found.trials) {
    ASSERT_FALSE(t.catches.empty()) << t.what->name;
    const diagnosis made = diagnose(calls_under(t, found), 1, 60);
    std::vector<std::string> named;
    for (const explanation& e : made.explanations) {
      EXPECT_TRUE(e.complete) << t.what->name;
      EXPECT_EQ(e.share, 1.0);
      named.push_back(fmt::format("{}", fmt::join(e.faults, " and ")));
    }
    EXPECT_EQ(named, std::vector<std::string>{std::string(t.what->name)})
        << name_of(t.rules) << ", " << found.cases[t.catches.front()].name << ": " << mend_smoke;
  }
}

std::vector<std::string> names_of(const diagnosis& d) {
  std::vector<std::string> names;
  for (const explanation& e : d.explanations) {
    for (const std::string& f : e.faults) names.push_back(f);
  }
  return names;
}

TEST(diagnosis, names_a_pair_where_no_single_fault_fits) {
  for (const case_spec& s : cases_of("mxfp4_q_quant", level::smoke, 1)) {
    if (std::count(s.flags.begin(), s.flags.end(), "TieToEven") == 0) continue;
    Rules wrong = rules_for(profile::nvidia);
    find_fault("e2m1_ties_away")->edit(wrong);
    find_fault("scales_big_endian")->edit(wrong);
    const diagnosis made = diagnose(observed(s.build(), wrong, profile::nvidia), 1);
    ASSERT_FALSE(made.explanations.empty());
    const explanation& first = made.explanations.front();
    EXPECT_TRUE(first.complete);
    EXPECT_EQ(std::set<std::string>(first.faults.begin(), first.faults.end()),
              (std::set<std::string>{"e2m1_ties_away", "scales_big_endian"}));
    return;
  }
  FAIL() << "no case with ties";
}

TEST(diagnosis, gives_the_nearest_where_nothing_fits) {
  for (const case_spec& s : cases_of("mxfp4_q_quant", level::smoke, 1)) {
    if (std::count(s.flags.begin(), s.flags.end(), "TieToEven") == 0) continue;
    observed_call call = observed(
        s.build(), rules_with(*find_fault("nibbles_swapped"), profile::nvidia), profile::nvidia);
    call.got[2].bytes[1] ^= std::byte{0x5A};  // a weight, which swapped nibbles leave alone
    const diagnosis made = diagnose(call, 1, 2);
    ASSERT_EQ(made.explanations.size(), 1u);
    EXPECT_FALSE(made.explanations[0].complete);
    EXPECT_LT(made.explanations[0].share, 1.0);
    EXPECT_GT(made.explanations[0].share, 0.5);
    EXPECT_EQ(names_of(made).front(), "nibbles_swapped");
    EXPECT_NE(text_of(made).front().find("no fault of the catalogue explains"), std::string::npos);
    EXPECT_NE(text_of(made).back().find("is the nearest"), std::string::npos);
    call.got = call.expected;
    EXPECT_TRUE(diagnose(call, 1).explanations.empty());
    return;
  }
  FAIL() << "no case with ties";
}

TEST(diagnosis, of_a_run_is_in_its_result) {
  const fault& f = *find_fault("scales_interleaved");
  const auto subject = candidate_of_rules("wrong", [&](profile p) { return rules_with(f, p); });
  run_options options;
  options.up_to = level::smoke;
  const run_result result =
      run_suite(plan_built_in(kernel_filter("quantize_and_insert_k_cache,mxfp4_q_quant"),
                              level::smoke, 1, profile::nvidia),
                *subject, options);
  ASSERT_EQ(result.diagnoses.size(), 1u);
  EXPECT_EQ(result.diagnoses[0].kernel, "quantize_and_insert_k_cache");
  EXPECT_EQ(names_of(result.diagnoses[0]), std::vector<std::string>{"scales_interleaved"});
}

}  // namespace
}  // namespace kvcts
