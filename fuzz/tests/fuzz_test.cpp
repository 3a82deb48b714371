// The fuzzer: what it draws, what it finds, how small that becomes, and that it can be run again.
#include "fuzz/fuzz.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "conformance/cases/slots.h"
#include "conformance/faults/faults.h"
#include "conformance/runner/costs.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "fuzz/relations.h"
#include "reference/kernels/kernels.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

class scratch {
 public:
  scratch() : path_(fs::temp_directory_path() / fmt::format("kvcts-fuzz-test-{}", getpid())) {
    fs::create_directories(path_);
  }
  ~scratch() { fs::remove_all(path_); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::unique_ptr<candidate> played(const fault& f) {
  return candidate_of_rules(std::string(f.name), [&f](profile p) { return rules_with(f, p); });
}

// --- Generator.

TEST(fuzz_plans_of, every_kernel) {
  ASSERT_EQ(fuzz_plans().size(), contracts().size());
  for (std::size_t i = 0; i < contracts().size(); ++i) {
    EXPECT_EQ(fuzz_plans()[i].kernel, contracts()[i]->name);
  }
}

// Every value of every knob gives a call that the contract takes, and those of most knobs change
// the calls.
TEST(fuzz_plans_of, every_knob) {
  for (const fuzz_plan& plan : fuzz_plans()) {
    const std::vector<fuzz_knob>& knobs = knobs_of(plan);
    fuzz_case c = {.plan = &plan,
                   .seed = 7,
                   .tokens = {3, 1, 4, 1, 5, 9},
                   .heads = {2, 6},
                   .knobs = std::vector<std::uint8_t>(knobs.size(), 0)};
    const std::string plain = digest_of(build(c));
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      for (std::size_t turn = 0; turn < knobs[k].values.size(); ++turn) {
        c.knobs[k] = static_cast<std::uint8_t>(turn);
        test_case made = build(c);
        const kernel_contract& contract = contract_of(plan.kernel);
        EXPECT_NO_THROW(initial_results(contract, made.attributes, made.inputs, canary))
            << plan.kernel << " " << knobs[k].name << " = " << knobs[k].values[turn];
      }
      c.knobs[k] = 0;
    }
    EXPECT_EQ(digest_of(build(c)), plain);
  }
}

TEST(fuzz_cases, are_those_of_their_seed) {
  const auto subject = make_candidate("reference", 1);
  const auto digest = [&](std::uint64_t seed, std::uint64_t cases) {
    return fuzz(*subject, {.cases = cases, .seed = seed}).digest();
  };
  const std::string once = digest(1, 68);
  EXPECT_EQ(digest(1, 68), once);
  EXPECT_NE(digest(2, 68), once);
  EXPECT_NE(digest(1, 67), once);
}

// The reference, and a note of what it was called with.
class noting : public candidate {
 public:
  std::string name() const override { return "noting"; }
  std::string version() const override { return "1"; }
  bool supports(std::string_view) const override { return true; }
  void run(const call& c, profile p) override {
    std::string bytes = c.kernel + std::string(name_of(p));
    for (const auto& [argument, tensor] : c.tensors) {
      bytes += argument;
      bytes.append(reinterpret_cast<const char*>(tensor.storage), tensor.storage_bytes);
    }
    seen.insert(std::move(bytes));
    reference_of(c.kernel)(c, rules_for(p));
  }
  std::set<std::string> seen;
};

TEST(fuzz_cases, of_all_shards_are_those_of_the_whole) {
  const auto run = [](noting& subject, shard part) {
    return fuzz(subject,
                {.kernels = "mxfp4_q_quant,fused_layout,combine*", .cases = 40, .part = part})
        .cases;
  };
  noting whole, shards;
  EXPECT_EQ(run(whole, {}), 40u);
  std::uint64_t cases = 0;
  for (int i = 1; i <= 3; ++i) {
    const std::uint64_t some = run(shards, {i, 3});
    EXPECT_GE(some, 10u);
    cases += some;
  }
  EXPECT_EQ(cases, 40u);
  EXPECT_EQ(shards.seen == whole.seen, true);
}

std::vector<std::uint64_t> numbers_in(const shard& part, const std::vector<std::uint64_t>& costs,
                                      std::uint64_t most) {
  numbers_of_shard numbers(part, costs, most);
  std::vector<std::uint64_t> all;
  while (const auto number = numbers.next()) all.push_back(*number);
  return all;
}

TEST(fuzz_cases, shards_take_equally_long_by_measured_cost) {
  std::vector<std::uint64_t> costs;  // of a round in two profiles
  for (int time = 0; time < 2; ++time) {
    for (const fuzz_plan& plan : fuzz_plans()) costs.push_back(cost_of_drawn(plan.kernel));
  }
  const std::uint64_t dearest = *std::max_element(costs.begin(), costs.end());
  EXPECT_GT(*std::min_element(costs.begin(), costs.end()), 0u) << "run costs.py";
  for (const std::uint64_t most : {std::uint64_t{100}, std::uint64_t{1000}, std::uint64_t{5000}}) {
    std::uint64_t all = 0;
    for (std::uint64_t n = 0; n < most; ++n) all += costs[n % costs.size()];
    for (const int count : {1, 2, 3, 7, 16, 50, 120}) {
      std::vector<int> seen(most, 0);
      std::uint64_t longest = 0;
      for (int index = 1; index <= count; ++index) {
        std::uint64_t load = 0;
        const std::vector<std::uint64_t> numbers = numbers_in({index, count}, costs, most);
        EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
        for (const std::uint64_t n : numbers) {
          ++seen.at(n);
          load += costs[n % costs.size()];
        }
        longest = std::max(longest, load);
      }
      EXPECT_EQ(seen, std::vector<int>(most, 1)) << count;
      const std::uint64_t least = std::max(all / static_cast<std::uint64_t>(count), dearest);
      EXPECT_LE(static_cast<double>(longest), 1.05 * static_cast<double>(least))
          << count << " shards of " << most << " cases";
    }
  }
  EXPECT_TRUE(numbers_in({1, 2}, {}, 100).empty());
}

// Sizes turn with the number: no shard may have small ones only, whatever divides what.
TEST(fuzz_cases, shards_draw_every_size) {
  for (const int count : {2, 25, 50, 100}) {
    numbers_of_shard numbers({1, count}, std::vector<std::uint64_t>(34, 1), UINT64_MAX);
    std::set<std::uint64_t> sizes;
    for (int i = 0; i < 34 * 100; ++i) sizes.insert(*numbers.next() % 100);
    EXPECT_EQ(sizes.size(), 100u) << count;
  }
}

TEST(fuzz_cases, digests_join_in_any_order) {
  const std::string a(64, '5'), b(64, 'c'), none(64, '0');
  EXPECT_EQ(joined_digest(a, b), std::string(64, '9'));
  EXPECT_EQ(joined_digest(joined_digest(a, b), a), b);
  EXPECT_EQ(joined_digest(a, none), a);
  EXPECT_THROW(joined_digest(a, "x"), input_error);
}

// What the cases of a kernel hold, in all.
struct reach {
  bool nan = false, subnormal = false, infinity = false, negative_zero = false;
  std::set<std::int64_t> slots;
  std::size_t empty = 0, strided = 0, optional_left_out = 0;
};

reach reach_of(const fuzz_plan& plan, std::uint64_t cases) {
  reach made;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const test_case c = build(drawn_case(plan, 1, i));
    made.empty += std::any_of(c.inputs.begin(), c.inputs.end(),
                              [](const buffer& b) { return count(b.at.shape) == 0; });
    made.strided += std::any_of(c.inputs.begin(), c.inputs.end(),
                                [](const buffer& b) { return !is_dense(b.at); });
    std::size_t inputs = 0;
    for (const argument_spec& a : contract_of(c.kernel).arguments) {
      inputs += a.direction != role::output;
    }
    made.optional_left_out += c.inputs.size() < inputs;
    for (const buffer& b : c.inputs) {
      if (b.type == dtype::i64 && b.name.find("slot_mapping") != std::string::npos) {
        for (std::size_t at = 0; at + 8 <= b.bytes.size(); at += 8) {
          made.slots.insert(load<std::int64_t>(b.bytes.data() + at));
        }
      }
      if (b.type != dtype::bf16) continue;
      for (std::size_t at = 0; at < b.bytes.size(); at += 2) {
        const auto bits = load<std::uint16_t>(b.bytes.data() + at);
        const int exponent = bits >> 7 & 0xFF, mantissa = bits & 0x7F;
        made.nan = made.nan || (exponent == 255 && mantissa != 0);
        made.infinity = made.infinity || (exponent == 255 && mantissa == 0);
        made.subnormal = made.subnormal || (exponent == 0 && mantissa != 0);
        made.negative_zero = made.negative_zero || bits == 0x8000;
      }
    }
  }
  return made;
}

TEST(fuzz_cases, reach_the_borders) {
  for (const fuzz_plan& plan : fuzz_plans()) {
    const reach r = reach_of(plan, 150);
    const kernel_contract& contract = contract_of(plan.kernel);
    EXPECT_GT(r.empty, 2u) << plan.kernel;
    if (plan.kernel != "fused_layout") {
      EXPECT_GT(r.strided, 20u) << plan.kernel;
    }
    for (const argument_spec& a : contract.arguments) {
      if (a.optional) {
        EXPECT_GT(r.optional_left_out, 10u) << plan.kernel;
      }
    }
    const bool rows = contract.argument("block_table") == nullptr && plan.indices == nullptr &&
                      plan.kernel != "fused_layout";
    if (rows) {
      EXPECT_TRUE(r.nan && r.infinity && r.subnormal && r.negative_zero) << plan.kernel;
    }
    if (!r.slots.empty()) {
      EXPECT_EQ(r.slots.count(INT64_MIN), 1u) << plan.kernel;
      EXPECT_EQ(r.slots.count(-1), 1u) << plan.kernel;
      EXPECT_EQ(r.slots.count(-2), 1u) << plan.kernel;
      EXPECT_EQ(r.slots.count(0), 1u) << plan.kernel;
    }
  }
}

// --- What it finds.

TEST(fuzz_of, the_cpu_candidate_finds_nothing) {
  const auto subject = make_candidate("cpu", 2);
  const fuzz_report report = fuzz(*subject, {.cases = 17 * 60, .seed = 20});
  EXPECT_EQ(report.exit_status(), 0);
  EXPECT_TRUE(report.rejected.empty());
  EXPECT_TRUE(report.failures.empty());
  EXPECT_EQ(report.rows.size(), 2 * contracts().size());
  for (const auto& [of, row] : report.rows) {
    EXPECT_EQ(row.cases, 30u) << of.first;
    EXPECT_GT(row.bytes, 500u) << of.first;
    if (of.first != "fused_layout") {
      EXPECT_GT(row.relations, 15u) << of.first;
    }
  }
}

struct planted {
  const char* kernel;
  const char* fault;
  std::size_t tokens, heads;  // at most, after shrinking
  std::size_t values;         // bf16 and f32 inputs other than zero, at most
};
class planted_fault : public ::testing::TestWithParam<planted> {};
INSTANTIATE_TEST_SUITE_P(
    all, planted_fault,
    ::testing::Values(planted{"mxfp4_q_quant", "e2m1_ties_away", 1, 1, 2},
                      planted{"mxfp4_q_quant", "padded_heads_left", 1, 1, 0},
                      planted{"mxfp4_q_quant", "scale_frexp", 1, 1, 1},
                      planted{"quantize_and_insert_k_cache", "dense_pages", 1, 1, 0},
                      planted{"quantize_and_insert_k_cache", "negative_slots_to_page_0", 1, 1, 0},
                      planted{"mxfp4_k_norm_quant_insert", "topk_fill_short", 1, 1, 0},
                      planted{"mxfp4_k_norm_quant_insert", "rows_past_mapping", 2, 1, 0},
                      planted{"rope_quant_insert", "group_at_every_token", 1, 1, 0},
                      planted{"indexer_k_norm_rope_store", "slots_below_minus_one", 1, 1, 0},
                      planted{"combine_topk_swa_indices", "topk_compacted", 1, 1, 0},
                      planted{"fused_save_compress_norm", "pool_swapped", 2, 1, 6}),
    [](const auto& info) { return fmt::format("{}_{}", info.param.kernel, info.param.fault); });

std::size_t values_in(const test_case& c) {
  std::size_t values = 0;
  for (const buffer& b : c.inputs) {
    if (b.type != dtype::bf16 && b.type != dtype::f32) continue;
    const std::size_t size = size_of(b.type);
    for (std::size_t at = 0; at < b.bytes.size(); at += size) {
      values += std::any_of(b.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                            b.bytes.begin() + static_cast<std::ptrdiff_t>(at + size),
                            [](std::byte x) { return x != std::byte{0}; });
    }
  }
  return values;
}

// Found, shrunk, saved; and the file alone fails in the same place.
TEST_P(planted_fault, is_found_and_small_and_replays) {
  const planted& want = GetParam();
  const auto subject = played(*find_fault(want.fault));
  const scratch folder;
  const fuzz_report report = fuzz(*subject, {.kernels = want.kernel,
                                             .cases = 400,
                                             .seed = 5,
                                             .profiles = {profile::nvidia},
                                             .save = folder.path()});
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.exit_status(), 1);
  const fuzz_failure& found = report.failures[0];
  EXPECT_EQ(found.kernel, want.kernel);
  EXPECT_LE(found.least_tokens, want.tokens);
  EXPECT_LE(found.least_heads, want.heads);
  EXPECT_LE(values_in(found.smallest), want.values);
  EXPECT_TRUE(found.shrunk_fully) << found.trials;
  ASSERT_FALSE(found.result.places.empty());

  const std::vector<planned_case> plan = plan_file(found.file, kernel_filter(""));
  ASSERT_EQ(plan.size(), 1u);
  run_options alone;
  alone.threads = 1;
  alone.diagnose_seconds = 0;
  const run_result again = run_suite(plan, *subject, alone);
  ASSERT_EQ(again.cases[0].what, outcome::failed);
  EXPECT_EQ(again.cases[0].places.at(0).place, found.result.places[0].place);
  EXPECT_EQ(again.cases[0].bytes_different, found.result.bytes_different);
  // What is no fault passes on it.
  const auto right = make_candidate("cpu", 1);
  EXPECT_EQ(run_suite(plan, *right, alone).cases[0].what, outcome::passed);
}

std::vector<std::string> faults_named(const run_result& result) {
  std::vector<std::string> names;
  for (const diagnosis& d : result.diagnoses) {
    for (const explanation& e : d.explanations)
      names.push_back(fmt::format("{}", fmt::join(e.faults, " and ")));
  }
  return names;
}

// Shrunk to one token, the case has one slot below -1, which two faults write alike.
TEST(fuzz_of, a_replay_names_one_of_faults_that_the_case_does_not_part) {
  const std::string fault = "slots_below_minus_one";
  const auto subject = played(*find_fault(fault));
  const scratch folder;
  const fuzz_report report = fuzz(*subject, {.kernels = "indexer_k_norm_rope_store",
                                             .cases = 400,
                                             .seed = 5,
                                             .profiles = {profile::nvidia},
                                             .save = folder.path()});
  ASSERT_EQ(report.failures.size(), 1u);
  run_options options;
  options.threads = 1;
  const run_result alone =
      run_suite(plan_file(report.failures[0].file, kernel_filter("")), *subject, options);
  EXPECT_EQ(faults_named(alone), (std::vector<std::string>{fault, "negative_slots_to_page_0"}));
  const run_result again = replay(report.failures[0], *subject, options);
  ASSERT_EQ(again.cases.size(), 1u);
  EXPECT_EQ(again.cases[0].what, outcome::failed);
  EXPECT_EQ(faults_named(again), std::vector<std::string>{fault});
}

// Every fault of the catalogue but those whose values the built-in cases make on purpose.
TEST(fuzz_long, finds_the_faults_of_the_catalogue) {
  std::size_t pairs = 0;
  std::vector<std::string> missed;
  for (const fault& f : all_faults()) {
    if (f.past_2gib) continue;
    for (const std::string_view kernel : f.kernels) {
      fuzz_options o = {.kernels = std::string(kernel), .cases = 400, .shrink_trials = 0};
      if (f.only) o.profiles = {*f.only};
      const auto subject = played(f);
      ++pairs;
      if (fuzz(*subject, o).failures.empty())
        missed.push_back(fmt::format("{} {}", kernel, f.name));
    }
  }
  fmt::print("missed {} of {} pairs:\n{}\n", missed.size(), pairs, fmt::join(missed, "\n"));
  EXPECT_GT(pairs, 500u);
  EXPECT_LE(missed.size(), 20u);
}

// --- Relations: each holds by the reference, and breaks where something is wrong that only shows
// between calls.

using answer = std::function<std::vector<buffer>(test_case)>;

std::vector<buffer> by_rules(test_case c, const Rules& rules) {
  return expected_results(contract_of(c.kernel), c.attributes, c.inputs, canary, rules);
}
std::vector<buffer> right(test_case c) {
  return by_rules(std::move(c), rules_for(profile::nvidia));
}

struct relation_fault {
  const char* relation;
  const char* kernel;
  std::vector<buffer> (*wrong)(test_case);
};
class relation_between : public ::testing::TestWithParam<relation_fault> {};

// The last row of a batch comes out wrong.
std::vector<buffer> last_row_wrong(test_case c) {
  std::vector<buffer> results = right(std::move(c));
  if (!results[0].bytes.empty()) results[0].bytes.back() ^= std::byte{1};
  return results;
}
// Every call forgets what the cache held.
std::vector<buffer> cache_cleared(test_case c) {
  for (buffer& b : c.inputs) {
    if (b.name == "k_cache") b.bytes.assign(b.bytes.size(), canary);
  }
  return right(std::move(c));
}
std::vector<buffer> padding_left(test_case c) {
  Rules rules = rules_for(profile::nvidia);
  rules.zero_padded_heads = false;
  return by_rules(std::move(c), rules);
}
std::vector<buffer> biased_scale(test_case c) {
  const bool is_small =
      std::to_integer<int>(c.inputs[0].bytes.empty() ? std::byte{0} : c.inputs[0].bytes[1]) % 2;
  std::vector<buffer> results = right(std::move(c));
  if (is_small && !results[1].bytes.empty()) results[1].bytes[0] ^= std::byte{1};
  return results;
}
std::vector<buffer> one_warp_alone(test_case c) {
  if (c.kernel == "mxfp4_k_norm_quant_insert" || c.kernel == "indexer_k_norm_quant_insert") {
    c.attributes["num_warps"] = std::int64_t{1};
  }
  return right(std::move(c));
}
std::vector<buffer> gathered_as_other_table(test_case c) {
  const bool gathers = c.kernel == "dequantize_and_gather_k_cache";
  return gathers ? by_rules(std::move(c), rules_with(*find_fault("e4m3_subnormal_read_as_normal"),
                                                     profile::nvidia))
                 : right(std::move(c));
}
std::vector<buffer> compacted(test_case c) {
  return by_rules(std::move(c), rules_with(*find_fault("topk_compacted"), profile::nvidia));
}
std::vector<buffer> remapped(test_case c) {
  return by_rules(std::move(c), rules_with(*find_fault("remap_skipped"), profile::nvidia));
}
std::vector<buffer> counted(test_case c) {
  return by_rules(std::move(c), rules_with(*find_fault("padding_tokens_counted"), profile::nvidia));
}

INSTANTIATE_TEST_SUITE_P(
    calls, relation_between,
    ::testing::Values(
        relation_fault{"permuted_tokens", "mxfp4_q_quant", last_row_wrong},
        relation_fault{"permuted_tokens", "fused_inv_rope_fp8_quant", last_row_wrong},
        relation_fault{"permuted_tokens", "dequantize_and_gather_k_cache", last_row_wrong},
        relation_fault{"split_batch", "fused_q_kv_rmsnorm_quant", last_row_wrong},
        relation_fault{"split_batch", "quantize_and_insert_k_cache", cache_cleared},
        relation_fault{"padded_heads", "mxfp4_q_quant", padding_left},
        relation_fault{"power_of_two", "mxfp4_q_quant", biased_scale},
        relation_fault{"power_of_two", "quantize_and_insert_k_cache", last_row_wrong},
        relation_fault{"standalone_is_fused", "mxfp4_fused_prologue", one_warp_alone},
        relation_fault{"standalone_is_fused", "dsa_fused_prologue", one_warp_alone},
        relation_fault{"gather_of_insert", "quantize_and_insert_k_cache", gathered_as_other_table},
        relation_fault{"gather_of_insert", "rope_quant_insert", gathered_as_other_table},
        relation_fault{"indices_by_definition", "combine_topk_swa_indices", compacted},
        relation_fault{"indices_by_definition", "build_flashinfer_mixed_sparse_indices", remapped},
        relation_fault{"indices_by_definition", "compute_global_topk_indices_and_lens", counted}),
    [](const auto& info) { return fmt::format("{}_{}", info.param.relation, info.param.kernel); });

// A drawn case with some knobs turned as the relation wants them: sums whose order shows.
fuzz_case case_for(const relation_fault& f, std::uint64_t number) {
  fuzz_case c = drawn_case(fuzz_plan_of(f.kernel), 1, number);
  if (std::string_view(f.relation) != "standalone_is_fused") return c;
  const std::vector<fuzz_knob>& knobs = knobs_of(*c.plan);
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    if (knobs[k].name == "norm") c.knobs[k] = 3;
    if (knobs[k].name == "negative" || knobs[k].name.substr(0, 11) == "type_k_norm") c.knobs[k] = 0;
  }
  return c;
}

// Cases of 60 on which the relation says something, and those on which it is broken.
std::pair<int, int> applied_and_broken(const relation_fault& f, const answer& run) {
  int applied = 0, broken = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    draw from(i);
    const relation_outcome what = relation_of(f.relation)
                                      .check(build(case_for(f, i)), from,
                                             {.run = run, .supports = [](auto) { return true; }});
    applied += what != relation_outcome::does_not_apply;
    broken += what == relation_outcome::broken;
  }
  return {applied, broken};
}

TEST_P(relation_between, holds_and_is_seen_broken) {
  const auto [applied, broken] = applied_and_broken(GetParam(), right);
  EXPECT_GT(applied, 15);
  EXPECT_EQ(broken, 0);
  EXPECT_GT(applied_and_broken(GetParam(), GetParam().wrong).second, 0);
}

// A candidate that answers a call by the one before it: no single call shows that.
class remembering : public candidate {
 public:
  std::string name() const override { return "remembering"; }
  std::string version() const override { return "1"; }
  bool supports(std::string_view kernel) const override { return kernel == "mxfp4_q_quant"; }
  void run(const call& c, profile p) override {
    reference_->run(c, p);
    const tensor_view& q = c.tensor("index_q");
    const tensor_view& weights = c.tensor("weights");
    if (q.dim(0) > tokens_ && tokens_ > 0) weights.element(0)[0] ^= std::byte{1};
    tokens_ = q.dim(0);
  }

 private:
  std::unique_ptr<candidate> reference_ = make_candidate("reference", 1);
  std::int64_t tokens_ = 0;
};

TEST(fuzz_of, state_between_calls_is_found) {
  remembering subject;
  const fuzz_report report = fuzz(subject, {.cases = 60, .profiles = {profile::nvidia}});
  EXPECT_EQ(report.exit_status(), 1);
  EXPECT_EQ(report.not_claimed.size(), contracts().size() - 1);
}

TEST(fuzz_of, nothing_claimed_is_no_pass) {
  class claims_nothing : public remembering {
    bool supports(std::string_view /*kernel*/) const override { return false; }
  } subject;
  EXPECT_EQ(fuzz(subject, {.cases = 5}).exit_status(), 1);
}

TEST(fuzz_of, a_wrong_pattern_is_refused) {
  const auto subject = make_candidate("reference", 1);
  EXPECT_THROW(fuzz(*subject, {.kernels = "no_such_*"}), input_error);
}

}  // namespace
}  // namespace kvcts
