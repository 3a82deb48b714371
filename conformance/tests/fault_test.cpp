// A wrong rule, played as a candidate, is caught and located.
#include <fmt/format.h>

#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "reference/formats/e2m1.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/log2.h"

namespace kvcts {
namespace {

using testing_tools::case_named;

struct fault {
  const char* name;
  const char* kernel;
  void (*edit)(Rules&);
};

std::uint8_t encode_e2m1_ties_away(float x) {
  // Ties lie at odd multiples of a quarter (below 2), of a half, of one.
  const std::uint32_t bits = bits_of(x);
  return encode_e2m1(
      float_of((bits & 0x7FFFFFFF) < 0x7F800000 && (bits & 0xFFFFF) == 0 ? bits + 1 : bits));
}
float exponent_one_too_high(float q) { return ceil_log2(q) + 1; }
std::uint8_t swapped(std::uint8_t even, std::uint8_t odd) { return pack_e2m1(odd, even); }
std::uint32_t big_endian(const std::uint8_t b[4]) {
  return static_cast<std::uint32_t>(b[0]) << 24 | b[1] << 16 | b[2] << 8 | b[3];
}
fp8_format other_table(fp8_format asked) {
  return asked == fp8_format::e4m3fn ? fp8_format::e4m3fnuz : fp8_format::e4m3fn;
}
float no_clamp(float x, float) { return x; }
std::int64_t dense_pages(std::int64_t page, std::int64_t, std::int64_t block_size,
                         std::int64_t record) {
  return page * block_size * record;
}

class faults : public ::testing::TestWithParam<fault> {};
INSTANTIATE_TEST_SUITE_P(
    all, faults,
    ::testing::Values(
        fault{"ties_away", "mxfp4_q_quant",
              [](Rules& r) { r.encode_e2m1 = encode_e2m1_ties_away; }},
        fault{"exponent_high", "mxfp4_q_quant",
              [](Rules& r) { r.scale_exponent = exponent_one_too_high; }},
        fault{"nibbles_swapped", "mxfp4_q_quant", [](Rules& r) { r.pack_nibbles = swapped; }},
        fault{"scales_big_endian", "mxfp4_q_quant", [](Rules& r) { r.pack_scales = big_endian; }},
        fault{"padding_left", "mxfp4_q_quant", [](Rules& r) { r.zero_padded_heads = false; }},
        fault{"no_floor", "mxfp4_q_quant",
              [](Rules& r) { r.floor_amax = [](float amax, float) { return amax; }; }},
        fault{"exponent_high_fp8", "quantize_and_insert_k_cache",
              [](Rules& r) { r.scale_exponent = exponent_one_too_high; }},
        fault{"other_table", "quantize_and_insert_k_cache",
              [](Rules& r) { r.cache_format = other_table; }},
        fault{"no_clamp", "quantize_and_insert_k_cache",
              [](Rules& r) { r.clamp_before_encode = no_clamp; }},
        fault{"pad_byte_left", "quantize_and_insert_k_cache",
              [](Rules& r) { r.write_pad_byte = false; }},
        fault{"dense_pages", "quantize_and_insert_k_cache",
              [](Rules& r) { r.page_offset = dense_pages; }}),
    [](const auto& info) { return std::string(info.param.name); });

run_result run_fault(const fault& f) {
  const auto subject = candidate_of_rules(f.name, [&](profile p) {
    Rules rules = rules_for(p);
    f.edit(rules);
    return rules;
  });
  run_options options;
  options.up_to = level::smoke;
  return run_suite(plan_built_in(kernel_filter(f.kernel), level::smoke, 1, profile::nvidia),
                   *subject, options);
}

TEST_P(faults, are_caught_at_level_smoke) {
  const run_result result = run_fault(GetParam());
  EXPECT_EQ(result.exit_status(false), 1) << result.verdict;
  EXPECT_EQ(result.verdict.rfind("does not conform: ", 0), 0u) << result.verdict;
  for (const case_result& c : result.cases) {
    EXPECT_NE(c.what, outcome::crashed) << c.name << ": " << c.message;
    if (c.what != outcome::failed) continue;
    EXPECT_FALSE(c.places.empty());
    EXPECT_LE(c.places.size(), 8u);
    EXPECT_EQ(c.replay, fmt::format("kvcts run --candidate {} --kernels {} --case {} --level smoke "
                                    "--profile nvidia --seed 1",
                                    GetParam().name, c.kernel, c.name));
  }
}

TEST(fault_places, name_token_head_and_dims) {
  const auto subject = candidate_of_rules("broken", [](profile p) {
    Rules rules = rules_for(p);
    rules.encode_e2m1 = encode_e2m1_ties_away;
    return rules;
  });
  // Three elements of one head: ties at 0.25 (even code 0), 2.5 and 5 (even codes 4 and 6).
  test_case c;
  c.kernel = "mxfp4_q_quant";
  c.name = "ties";
  c.attributes = {{"weight_scale", 1.0}, {"padded_num_heads", std::int64_t{2}}};
  buffer q{"index_q", dtype::bf16, dense({2, 1, 128}), std::vector<std::byte>(2 * 128 * 2)};
  buffer weights{"index_weights", dtype::bf16, dense({2, 1}), std::vector<std::byte>(4)};
  const auto put = [&](std::int64_t dim, std::uint16_t bits) {
    store(q.view().element(1, 0, dim), bits);
  };
  put(32, 0x40C0);  // 6: the block's scale is 2^0
  put(36, 0x3E80);  // 0.25
  put(37, 0xC020);  // -2.5
  put(62, 0x40A0);  // 5
  c.inputs = {q, weights};
  const case_result result = run_case(c, *subject, profile::nvidia);
  EXPECT_EQ(result.what, outcome::failed);
  EXPECT_EQ(result.bytes_different, 2u);
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].argument, "q_packed");
  EXPECT_EQ(result.places[0].place, "token 1, head 0, dims 36..63: 2 bytes differ");
  EXPECT_EQ(result.places[0].byte, 2u * 64 + 18);
  EXPECT_EQ(result.places[0].expected, "0xC0 (0, -2)");
  EXPECT_EQ(result.places[0].got, "0xD1 (0.5, -3)");
}

TEST(fault_places, name_token_slot_page_and_block) {
  // The scale of dims 192..255 of one token: exponent one too high where amax is 448 * 2^3.
  const auto subject = candidate_of_rules("broken", [](profile p) {
    Rules rules = rules_for(p);
    rules.exponent_byte = [](float e) {
      const auto byte = static_cast<std::uint8_t>(e + 127);
      return static_cast<std::uint8_t>(byte == 130 ? 131 : byte);
    };
    return rules;
  });
  test_case c;
  c.kernel = "quantize_and_insert_k_cache";
  c.name = "one_scale";
  c.attributes = {{"block_size", std::int64_t{64}},
                  {"use_fnuz", std::int64_t{0}},
                  {"bytes_per_token", std::int64_t{584}}};
  buffer k{"k", dtype::bf16, dense({18, 512}), std::vector<std::byte>(18 * 1024)};
  buffer cache{"k_cache", dtype::u8, dense({3, 64, 584}),
               std::vector<std::byte>(3 * 64 * 584, canary)};
  buffer slots{"slot_mapping", dtype::i64, dense({18}), std::vector<std::byte>(18 * 8)};
  for (std::int64_t t = 0; t < 18; ++t) store(slots.view().element(t), 128 + t);
  store(k.view().element(17, 200), std::uint16_t{0x4560});  // 3584 = 448 * 2^3
  c.inputs = {k, cache, slots};
  const case_result result = run_case(c, *subject, profile::nvidia);
  EXPECT_EQ(result.bytes_different, 1u);
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].argument, "k_cache");
  EXPECT_EQ(result.places[0].place,
            "token 17 -> slot 145 -> page 2, position 17, scale of block 3 (dims 192..255)");
  EXPECT_EQ(result.places[0].byte, 2u * 64 * 584 + 64 * 576 + 17 * 8 + 3);
  EXPECT_EQ(result.places[0].expected, "0x82 (2^3)");
  EXPECT_EQ(result.places[0].got, "0x83 (2^4)");
}

}  // namespace
}  // namespace kvcts
