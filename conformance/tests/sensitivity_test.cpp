// What the flags promise: a wrong rule shows in a smoke case that carries the rule's flag.
#include <algorithm>
#include <iostream>
#include <set>

#include "conformance/cases/smoke.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/log2.h"

namespace kvcts {
namespace {

struct wrong_rule {
  const char* name;
  const char* kernel;
  const char* flag;
  void (*edit)(Rules&);
};

float even_apart(float a, float b, float c, float s) { return sub(mul(a, c), mul(b, s)); }
float even_other(float a, float b, float c, float s) { return fma(-b, s, mul(a, c)); }
float odd_apart(float a, float b, float c, float s) { return add(mul(b, c), mul(a, s)); }
float odd_by_odd(float a, float b, float c, float s) { return fma(b, c, mul(a, s)); }
float odd_by_even(float a, float b, float c, float s) { return fma(a, s, mul(b, c)); }
float back_even_other(float a, float b, float c, float s) { return fma(b, s, mul(a, c)); }
float back_odd_other(float a, float b, float c, float s) { return fma(-a, s, mul(b, c)); }
float no_clamp(float x, float) { return x; }
float no_floor(float amax, float) { return amax; }
float as_it_is(float x) { return x; }
float by_bf16(float x) { return decode_bf16(encode_bf16(x)); }
// The exponent field, one more for any mantissa: no window above powers of two.
float field_exponent(float q) {
  const std::uint32_t bits = bits_of(q);
  if (bits >= 0x7F800000) return q;
  return static_cast<float>(static_cast<int>(bits >> 23) - 127 + ((bits & 0x7FFFFF) != 0 ? 1 : 0));
}
std::uint16_t truncated(float x) { return static_cast<std::uint16_t>(bits_of(x) >> 16); }
// Ties of E4M3 go to the larger magnitude.
std::uint8_t ties_away(float x, fp8_format format) {
  const std::uint32_t bits = bits_of(x);
  const bool finite = (bits & 0x7FFFFFFF) < 0x7F800000;
  return encode_e4m3(float_of(finite && (bits & 0x7FFFF) == 0 ? bits + 1 : bits), format);
}
std::uint32_t big_endian(const std::uint8_t b[4]) {
  return static_cast<std::uint32_t>(b[0]) << 24 | b[1] << 16 | b[2] << 8 | b[3];
}
rope_pair halves(std::int64_t pair, std::int64_t rope_dims) { return {pair, pair + rope_dims / 2}; }
std::int64_t own_position(std::int64_t position, std::int64_t) { return position; }
bool group_begins(std::int64_t position, std::int64_t ratio) { return position % ratio == 0; }
std::int64_t dense_pages(std::int64_t page, std::int64_t, std::int64_t block_size,
                         std::int64_t bytes) {
  return page * block_size * bytes;
}
std::int64_t by_rows(std::int64_t position, std::int64_t dim, std::int64_t dims) {
  return position * dims + dim;
}
reduction_tree four_warps(std::int64_t padded, int bytes, int) { return tree_of(padded, bytes, 4); }
reduction_tree one_warp(std::int64_t padded, int bytes, int) { return tree_of(padded, bytes, 1); }
reduction_tree neighbours(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.lane_pairing = pairing::doubling;
  return tree;
}
reduction_tree wide_lanes(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.per *= 2;
  return tree;
}
float pool_apart(float p0, float a, float p1, float b) { return add(mul(p0, a), mul(p1, b)); }
float pool_other(float p0, float a, float p1, float b) { return fma(p1, b, mul(p0, a)); }
bool only_minus_one(std::int64_t slot) { return slot != -1; }
std::uint8_t nvfp4_truncated(const Rules& r, float amax) {
  const std::uint8_t code = r.nvfp4_scale(rules_for(profile::nvidia), amax);
  return decode_e4m3(code, fp8_format::e4m3fn) > amax / 6 && code > 1
             ? static_cast<std::uint8_t>(code - 1)
             : code;
}

class sensitivity : public ::testing::TestWithParam<wrong_rule> {};

#define WRONG(name, kernel, flag, field, value)           \
  wrong_rule {                                            \
    name, kernel, flag, [](Rules& r) { r.field = value; } \
  }
constexpr const char* query = "fused_indexer_q_rope_quant";
constexpr const char* inverse = "fused_inv_rope_fp8_quant";
constexpr const char* key = "indexer_k_norm_rope_store";
constexpr const char* compress = "fused_save_compress_norm";
constexpr const char* insert = "rope_quant_insert";

INSTANTIATE_TEST_SUITE_P(
    query, sensitivity,
    ::testing::Values(WRONG("even_apart", query, "FmaContraction", rope_even, even_apart),
                      WRONG("even_other", query, "FmaContraction", rope_even, even_other),
                      WRONG("odd_apart", query, "FmaContraction", rope_odd_query, odd_apart),
                      WRONG("odd_other", query, "FmaContraction", rope_odd_query, odd_by_odd),
                      WRONG("unrounded", query, "FmaContraction", through_bf16, as_it_is),
                      WRONG("halves", query, "FmaContraction", rope_pair_of, halves),
                      WRONG("ties_away", query, "TieToEven", encode_e4m3, ties_away),
                      WRONG("no_floor", query, "SubnormalAmax", floor_amax, no_floor),
                      WRONG("one_format", query, "Fnuz", cache_format,
                            [](fp8_format) { return fp8_format::e4m3fn; })),
    [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(
    inverse, sensitivity,
    ::testing::Values(
        WRONG("even_other", inverse, "FmaContraction", inverse_rope_even, back_even_other),
        WRONG("odd_other", inverse, "FmaContraction", inverse_rope_odd, back_odd_other),
        WRONG("even_forward", inverse, "FmaContraction", inverse_rope_even, even_apart),
        WRONG("rounded", inverse, "FmaContraction", kept_f32, by_bf16),
        WRONG("field", inverse, "ScaleExponentWindow", scale_exponent, field_exponent),
        WRONG("ties_away", inverse, "TieToEven", encode_e4m3, ties_away),
        WRONG("no_floor", inverse, "SubnormalAmax", floor_amax, no_floor),
        WRONG("no_clamp", inverse, "NonFinite", clamp_before_encode, no_clamp),
        WRONG("padding_left", inverse, "PaddedRows", zero_padding_rows, false),
        WRONG("big_endian", inverse, "PackedScales", pack_scales, big_endian),
        WRONG("truncated", inverse, "Unquantized", round_bf16, truncated)),
    [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(
    key, sensitivity,
    ::testing::Values(WRONG("four_warps", key, "OrderSensitive", tree, four_warps),
                      WRONG("neighbours", key, "OrderSensitive", tree, neighbours),
                      WRONG("wide_lanes", key, "OrderSensitive", tree, wide_lanes),
                      WRONG("even_other", key, "FmaContraction", rope_even, even_other),
                      WRONG("odd_other", key, "FmaContraction", rope_odd, odd_by_even),
                      WRONG("unrounded", key, "FmaContraction", through_bf16, as_it_is),
                      WRONG("group_begins", key, "GroupBoundary", group_ends_at, group_begins),
                      WRONG("own_position", key, "GroupBoundary", rope_position, own_position),
                      WRONG("dense_pages", key, "StridedPage", page_offset, dense_pages),
                      WRONG("by_rows", key, "Tiled", tiled_offset, by_rows),
                      WRONG("ties_away", key, "TieToEven", encode_e4m3, ties_away),
                      WRONG("no_floor", key, "SubnormalAmax", floor_amax, no_floor),
                      WRONG("past_mapping", key, "ShortMapping", rows_past_mapping, true)),
    [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(
    insert, sensitivity,
    ::testing::Values(WRONG("even_other", insert, "FmaContraction", rope_even, even_other),
                      WRONG("odd_other", insert, "FmaContraction", rope_odd, odd_by_even),
                      WRONG("rounded", insert, "FmaContraction", kept_f32, by_bf16),
                      WRONG("field", insert, "ScaleExponentWindow", scale_exponent, field_exponent),
                      WRONG("truncated", insert, "ScaleTie", nvfp4_scale, nvfp4_truncated),
                      WRONG("group_begins", insert, "GroupBoundary", group_ends_at, group_begins),
                      WRONG("own_position", insert, "GroupBoundary", rope_position, own_position),
                      WRONG("dense_pages", insert, "StridedPage", page_offset, dense_pages),
                      WRONG("ties_away", insert, "TieToEven", encode_e4m3, ties_away),
                      WRONG("no_floor", insert, "ZeroBlock", floor_amax, no_floor),
                      WRONG("no_clamp", insert, "NonFinite", clamp_before_encode, no_clamp),
                      WRONG("pad_left", insert, "WarmCache", write_pad_byte, false)),
    [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(
    compress, sensitivity,
    ::testing::Values(WRONG("one_warp", compress, "OrderSensitive", tree, one_warp),
                      WRONG("neighbours", compress, "OrderSensitive", tree, neighbours),
                      WRONG("wide_lanes", compress, "OrderSensitive", tree, wide_lanes),
                      WRONG("pool_apart", compress, "FmaContraction", pool_pair, pool_apart),
                      WRONG("pool_other", compress, "FmaContraction", pool_pair, pool_other),
                      WRONG("true_division", compress, "FmaContraction", div, true_div),
                      WRONG("truncated", compress, "TieToEven", round_bf16, truncated),
                      WRONG("group_begins", compress, "GroupBoundary", group_ends_at, group_begins),
                      WRONG("all_kept", compress, "Ring", first_kept_token,
                            [](std::int64_t start, std::int64_t, std::int64_t) { return start; }),
                      WRONG("none_kept", compress, "Ring", first_kept_token,
                            [](std::int64_t, std::int64_t end, std::int64_t) { return end; }),
                      WRONG("minus_one_only", compress, "NegativeSlot", slot_is_live,
                            only_minus_one)),
    [](const auto& info) { return std::string(info.param.name); });
#undef WRONG

TEST_P(sensitivity, of_a_flagged_small_case) {
  const wrong_rule& wrong = GetParam();
  const kernel_contract& contract = contract_of(wrong.kernel);
  const Rules right = rules_for(profile::nvidia);
  Rules edited = right;
  wrong.edit(edited);
  std::size_t flagged = 0;
  std::size_t different = 0;
  for (const case_spec& spec : smoke_candidates(wrong.kernel, 1)) {
    if (std::find(spec.flags.begin(), spec.flags.end(), wrong.flag) == spec.flags.end()) continue;
    test_case c = spec.build();
    const auto by_right = expected_results(contract, c.attributes, c.inputs, canary, right);
    const auto by_wrong = expected_results(contract, c.attributes, c.inputs, canary, edited);
    ++flagged;
    for (std::size_t i = 0; i < by_right.size(); ++i) {
      if (by_right[i].bytes == by_wrong[i].bytes) continue;
      ++different;
      break;
    }
  }
  EXPECT_GT(different, 0u) << "of " << flagged << " cases with " << wrong.flag;
  std::cout << different << " of " << flagged << " cases with " << wrong.flag << " differ\n";
}

class smoke_flags : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(kernels, smoke_flags,
                         ::testing::Values(query, inverse, key, compress, insert));

// But those of size: long batches, and caches that no file holds.
TEST_P(smoke_flags, are_all_but_size) {
  std::set<std::string> wanted, found;
  for (const case_spec& spec : cases_of(GetParam(), level::exhaustive, 1)) {
    if (std::count(spec.flags.begin(), spec.flags.end(), "Past2GiB") != 0) continue;
    wanted.insert(spec.flags.begin(), spec.flags.end());
    if (spec.from == level::smoke) found.insert(spec.flags.begin(), spec.flags.end());
  }
  wanted.erase("LongBatch");
  for (const std::string& flag : wanted) EXPECT_EQ(found.count(flag), 1u) << flag;
}

// Codes and scales of all acceptance cases: outputs that are all alike would pass anything.
struct reached {
  std::set<int> codes, scales;
};
reached reach(const char* kernel, const char* chosen, const char* codes, const char* scales,
              int scale_bytes) {
  reached found;
  for (const case_spec& spec : cases_of(kernel, level::acceptance, 1)) {
    if (spec.name.rfind(chosen, 0) != 0) continue;
    test_case c = spec.build();
    if (c.inputs[0].bytes.size() > std::size_t{1} << 16 && c.inputs[2].bytes.size() > 1 << 16) {
      continue;
    }
    fill_expected(c, profile::nvidia);
    for (const std::byte b : find_buffer(c.expected, codes)->bytes) {
      found.codes.insert(static_cast<int>(b));
    }
    if (scales == nullptr) continue;
    const auto& bytes = find_buffer(c.expected, scales)->bytes;
    for (std::size_t i = 0; i + 3 < bytes.size(); i += static_cast<std::size_t>(scale_bytes)) {
      const auto bits = scale_bytes == 1 ? static_cast<std::uint32_t>(bytes[i])
                                         : load<std::uint32_t>(bytes.data() + i) >> 23;
      found.scales.insert(static_cast<int>(bits));
    }
  }
  return found;
}

TEST(sensitivity, of_the_query_reaches_every_code_and_scale) {
  // 0xFF is a NaN that the encoder does not write. FNUZ: 0x7F and 0xFF lie past the limit 224.
  EXPECT_EQ(reach(query, "fp8", "q_quant", nullptr, 0).codes.size(), 255u);
  EXPECT_EQ(reach(query, "fnuz", "q_quant", nullptr, 0).codes.size(), 254u);
  const reached mxfp4 = reach(query, "mxfp4", "q_packed", "q_scale", 1);
  EXPECT_EQ(mxfp4.codes.size(), 256u);
  EXPECT_GE(mxfp4.scales.size(), 245u);
}

TEST(sensitivity, of_the_inverse_rotation_reaches_every_code_and_scale) {
  const reached f32 = reach(inverse, "f32", "output", "scales", 4);
  EXPECT_EQ(f32.codes.size(), 254u);   // NaN is clamped to 0x7E first
  EXPECT_GE(f32.scales.size(), 160u);  // 2^-42 .. 2^120
  const reached packed = reach(inverse, "tma", "output", "scales", 1);
  EXPECT_EQ(packed.codes.size(), 254u);
  EXPECT_GE(packed.scales.size(), 160u);
}

}  // namespace
}  // namespace kvcts
