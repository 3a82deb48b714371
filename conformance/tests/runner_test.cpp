// The runner sees every stray write, whatever its value, and tells outcomes apart.
#include <functional>
#include <stdexcept>
#include <vector>

#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "reference/kernels/kernels.h"

namespace kvcts {
namespace {

using testing_tools::case_named;
using testing_tools::tampering;

case_result run_insert(std::function<void(const call&)> more) {
  tampering subject(std::move(more));
  // Pages of 3 tokens, 1168 bytes between them, a guard behind the last, some negative slots.
  test_case c = case_named("quantize_and_insert_k_cache",
                           "n14_s11_b3_r584_mixed_gap1168_rows8_guard_warm_neg");
  c.expected.clear();
  return run_case(c, subject, profile::nvidia);
}

case_result run_query(std::function<void(const call&)> more) {
  tampering subject(std::move(more));
  test_case c = case_named("mxfp4_q_quant", "t7_h3_p3_mixed_strided_wf32_wgap2");
  c.expected.clear();
  return run_case(c, subject, profile::nvidia);
}

constexpr std::int64_t page = 3 * 584;

TEST(runner, passes_the_reference) {
  const case_result result = run_insert([](const call&) {});
  EXPECT_EQ(result.what, outcome::passed);
  EXPECT_EQ(result.bytes_different, 0u);
  EXPECT_TRUE(result.places.empty());
  EXPECT_EQ(result.output_digests.size(), 1u);
  // The cache and the inputs, with both canaries.
  EXPECT_GT(result.bytes_compared, 2 * 14u * 1024);
}

TEST(runner, sees_a_write_between_pages) {
  const case_result result = run_insert([](const call& c) {
    store(c.tensor("k_cache").element(1, 0, 0) + page + 5, std::uint8_t{0xEE});
  });
  EXPECT_EQ(result.what, outcome::failed);
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].place, "page 1, byte 1757 (between pages: must not change)");
  EXPECT_EQ(result.places[0].got, "0xEE");
}

// A stray write of what is there already shows with the other canary only.
TEST(runner, sees_a_write_of_the_value_that_is_there) {
  std::byte seen{};
  bool first = true;
  const case_result result = run_insert([&](const call& c) {
    std::byte* at = c.tensor("k_cache").element(0, 0, 0) + page + 9;
    if (first) seen = *at;
    first = false;
    *at = seen;
  });
  EXPECT_EQ(result.what, outcome::failed);
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].place,
            "page 0, byte 1761 (between pages: must not change) [second canary 0x33]");
  EXPECT_EQ(result.bytes_different, 1u);
}

TEST(runner, sees_a_write_into_the_storage_behind_the_last_page) {
  const case_result result = run_insert([](const call& c) {
    const tensor_view& cache = c.tensor("k_cache");
    cache.storage[cache.storage_bytes - 1] ^= std::byte{1};
  });
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_NE(result.places[0].place.find("guard byte"), std::string::npos) << result.places[0].place;
}

TEST(runner, sees_a_write_outside_of_a_storage) {
  const case_result before =
      run_query([](const call& c) { *(c.tensor("q_packed").storage - 2) = std::byte{0}; });
  ASSERT_EQ(before.places.size(), 1u);
  EXPECT_EQ(before.places[0].place, "2 bytes before the buffer (must not change)");
  const case_result behind = run_query([](const call& c) {
    const tensor_view& weights = c.tensor("weights");
    *(weights.storage + 7 * 3 * 4) = std::byte{0};
  });
  ASSERT_EQ(behind.places.size(), 1u);
  EXPECT_EQ(behind.places[0].argument, "weights");
  EXPECT_EQ(behind.places[0].place, "guard byte 0 after the buffer (must not change)");
  EXPECT_EQ(behind.places[0].expected, "0xCC");
}

TEST(runner, sees_a_changed_input) {
  const case_result result = run_query(
      [](const call& c) { store(c.tensor("index_q").element(2, 1, 7), std::uint16_t{0x1234}); });
  EXPECT_EQ(result.what, outcome::failed);
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].argument, "index_q");
  EXPECT_EQ(result.places[0].place, "token 2, head 1, dim 7 [an input: must not change]");
}

// A candidate that takes bytes between rows for data gives the right bytes for one slack only.
TEST(runner, turns_the_bytes_between_rows) {
  std::vector<std::byte> slack;
  run_query([&](const call& c) {
    const tensor_view& q = c.tensor("index_q");
    slack.push_back(*(q.element(0, 0, 127) + 2));
    slack.push_back(*(c.tensor("index_weights").element(0, 2) + 4));
  });
  ASSERT_EQ(slack.size(), 4u);
  EXPECT_EQ(slack[0], canary);
  EXPECT_EQ(slack[1], canary);
  EXPECT_EQ(slack[2], second_canary);
  EXPECT_EQ(slack[3], second_canary);
}

TEST(runner, starts_outputs_with_both_canaries) {
  std::vector<std::byte> seen;
  class untouched : public candidate {
   public:
    explicit untouched(std::vector<std::byte>& to) : seen_(to) {}
    std::string name() const override { return "untouched"; }
    std::string version() const override { return "1"; }
    bool supports(std::string_view) const override { return true; }
    void run(const call& c, profile p) override {
      seen_.push_back(*c.tensor("weights").element(0, 0));
      reference_of(c.kernel)(c, rules_for(p));
    }

   private:
    std::vector<std::byte>& seen_;
  } subject(seen);
  test_case c = case_named("mxfp4_q_quant", "t2_h3_p4_ties");
  run_case(c, subject, profile::nvidia);
  EXPECT_EQ(seen, (std::vector<std::byte>{canary, second_canary}));
}

// A file's expected bytes are the ones that count, whatever the reference says.
TEST(runner, judges_by_the_expected_bytes_of_the_case) {
  test_case c = case_named("mxfp4_q_quant", "t2_h3_p4_ties");
  c.expected[0].bytes[3] ^= std::byte{1};
  tampering subject([](const call&) {});
  const case_result result = run_case(c, subject, profile::nvidia);
  EXPECT_EQ(result.what, outcome::failed);
  EXPECT_EQ(result.bytes_different, 1u);
  EXPECT_EQ(result.places[0].place, "token 0, head 0, dims 6..7");
}

TEST(runner, calls_an_exception_a_crash) {
  const case_result result = run_query([](const call&) { throw std::runtime_error("sticky"); });
  EXPECT_EQ(result.what, outcome::crashed);
  EXPECT_EQ(result.message, "sticky");
}

TEST(runner, refuses_a_case_that_breaks_its_contract) {
  test_case c = case_named("mxfp4_q_quant", "t2_h3_p4_ties");
  c.attributes["padded_num_heads"] = std::int64_t{2};
  bool called = false;
  tampering subject([&](const call&) { called = true; });
  EXPECT_THROW(run_case(c, subject, profile::nvidia), input_error);
  EXPECT_FALSE(called);
}

run_result run_smoke(candidate& subject) {
  run_options options;
  options.up_to = level::smoke;
  return run_suite(plan_built_in(kernel_filter("mxfp4_q_quant,quantize_and_insert_k_cache"),
                                 level::smoke, 1, profile::nvidia),
                   subject, options);
}

TEST(verdict, tells_outcomes_apart) {
  tampering good([](const call&) {});
  const run_result full = run_smoke(good);
  EXPECT_EQ(full.exit_status(true), 0);
  EXPECT_EQ(full.verdict.rfind("conforms: ", 0), 0u) << full.verdict;
  EXPECT_EQ(full.suite_digest.size(), 64u);

  tampering partial([](const call&) {});
  partial.unsupported = "mxfp4_q_quant";
  const run_result half = run_smoke(partial);
  EXPECT_EQ(half.exit_status(false), 0);
  EXPECT_EQ(half.exit_status(true), 1);
  EXPECT_EQ(half.verdict.rfind("conforms (1 of 2 claimed): ", 0), 0u) << half.verdict;

  tampering crashing([](const call&) { throw std::runtime_error("x"); });
  EXPECT_EQ(run_smoke(crashing).exit_status(false), 3);

  run_result nothing;
  nothing.cases.resize(3);
  for (case_result& c : nothing.cases) c.what = outcome::unsupported;
  EXPECT_EQ(nothing.exit_status(false), 1);
  EXPECT_EQ(verdict_of(nothing), "does not conform: the candidate supports none of the 3 cases");
}

TEST(parallel, work_is_done_once_and_failures_come_back) {
  std::vector<int> done(100, 0);
  for_each_parallel(done.size(), 3, [&](std::size_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(100, 1));
  EXPECT_THROW(for_each_parallel(10, 2,
                                 [](std::size_t i) {
                                   if (i == 4) throw input_error("no");
                                 }),
               input_error);
}

}  // namespace
}  // namespace kvcts
