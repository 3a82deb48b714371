// The fuzzer: what it draws, what it finds, how small that becomes, and that it can be run again.
#include "fuzz/fuzz.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "conformance/cases/slots.h"
#include "conformance/faults/faults.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "fuzz/relations.h"
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
    fuzz_case c = {.plan = &plan, .seed = 7, .tokens = {3, 1, 4, 1, 5, 9}, .heads = {2, 6}};
    c.knobs.assign(knobs.size(), 0);
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
    return fuzz(*subject, {.cases = cases, .seed = seed}).digest;
  };
  const std::string once = digest(1, 68);
  EXPECT_EQ(digest(1, 68), once);
  EXPECT_NE(digest(2, 68), once);
  EXPECT_NE(digest(1, 67), once);
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
    if (plan.kernel != "fused_layout") EXPECT_GT(r.strided, 20u) << plan.kernel;
    for (const argument_spec& a : contract.arguments) {
      if (a.optional) EXPECT_GT(r.optional_left_out, 10u) << plan.kernel;
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
  EXPECT_EQ(report.rejected, std::vector<std::string>{});
  EXPECT_TRUE(report.failures.empty());
  for (const auto& [kernel, row] : report.rows) {
    EXPECT_EQ(row.cases, 60u) << kernel;
    EXPECT_GT(row.bytes, 1000u) << kernel;
    if (kernel != "fused_layout") EXPECT_GT(row.relations, 30u) << kernel;
  }
}

TEST(fuzz_scan, every_fault) {
  for (const fault& f : all_faults()) {
    if (f.past_2gib) continue;
    for (const std::string_view kernel : f.kernels) {
      fuzz_options o;
      o.kernels = kernel;
      o.cases = 400;
      o.shrink_trials = 0;
      if (f.only) o.profiles = {*f.only};
      const auto subject = played(f);
      const fuzz_report report = fuzz(*subject, o);
      if (report.failures.empty()) {
        fmt::print("MISSED {} {}\n", kernel, f.name);
      } else {
        fmt::print("found {} {} case {}\n", kernel, f.name, report.failures[0].number);
      }
    }
  }
}

}  // namespace
}  // namespace kvcts
