// Bugs that real kernels had, by kind: the smallest input of each, the bytes that our ops give, and
// the fault of the catalogue that stands for it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "conformance/faults/faults.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/ue8m0.h"
#include "reference/kernels/fp8_block.h"
#include "reference/kernels/mxfp4_block.h"
#include "reference/layout/paged.h"
#include "reference/numerics/log2.h"

namespace kvcts {
namespace {

const Rules nvidia = rules_for(profile::nvidia);
const Rules ieee = rules_for(profile::ieee);
Rules with(const char* name) { return rules_with(*find_fault(name), profile::nvidia); }

// A block of 32: `values`, then zeros.
mxfp4_block mxfp4(const std::vector<float>& values, const Rules& rules = nvidia) {
  float x[32] = {};
  std::copy(values.begin(), values.end(), x);
  return quantize_mxfp4_block(x, rules);
}
std::vector<int> codes_of(const mxfp4_block& block, std::size_t n) {
  std::vector<int> codes;
  for (std::size_t i = 0; i < n; ++i) {
    codes.push_back(i % 2 == 0 ? block.packed[i / 2] & 15 : block.packed[i / 2] >> 4);
  }
  return codes;
}

struct fp8_result {
  int scale;  // UE8M0 byte
  std::vector<std::uint8_t> codes;
};
fp8_result fp8(std::vector<float> values, fp8_format format = fp8_format::e4m3fn,
               const Rules& rules = nvidia) {
  const fp8_form form = {float_of(0x38D1B717), quotient::mul, fp8_scaling::multiply, true};
  values.resize(32);
  fp8_result made;
  made.codes.resize(32);
  const float exponent =
      quantize_fp8_block(rules, form, values.data(), 32, format, made.codes.data());
  made.scale = rules.exponent_byte(rules.limit_exponent(exponent, -127, 128));
  return made;
}

TEST(bug_of_elements, ties_of_fp4_go_to_even) {
  const std::vector<float> ties = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5, 6};
  EXPECT_EQ(codes_of(mxfp4(ties), 8), (std::vector<int>{0, 2, 2, 4, 4, 6, 6, 7}));
  EXPECT_EQ(mxfp4(ties).scale, 127);
  EXPECT_EQ(codes_of(mxfp4(ties, with("e2m1_ties_away")), 8),
            (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 7}));
  std::vector<float> negative;
  for (const float x : ties) negative.push_back(-x);
  EXPECT_EQ(codes_of(mxfp4(negative), 8), (std::vector<int>{8, 10, 10, 12, 12, 14, 14, 15}));
}

TEST(bug_of_elements, fp8_saturates_at_its_largest_code_only) {
  EXPECT_EQ(encode_e4m3fn(260.0F), 0x78);
  EXPECT_EQ(encode_e4m3fn(300.0F), 0x79);
  EXPECT_EQ(encode_e4m3fn(1.0625F), 0x38);
  EXPECT_EQ(encode_e4m3fnuz(130.0F), 0x78);
  const Rules early = with("e4m3_saturates_early");
  EXPECT_EQ(early.encode_e4m3(260.0F, fp8_format::e4m3fn), 0x7E);
  EXPECT_EQ(early.encode_e4m3(130.0F, fp8_format::e4m3fnuz), 0x7F);
  EXPECT_EQ(with("e4m3_ties_away").encode_e4m3(1.0625F, fp8_format::e4m3fn), 0x39);
}

TEST(bug_of_elements, fp8_is_rounded_once) {
  EXPECT_EQ(encode_e4m3fn(float_of(0x3F880800)), 0x39);
  EXPECT_EQ(encode_e4m3fn(float_of(0x3F97F800)), 0x39);
  const Rules twice = with("e4m3_by_bf16");
  EXPECT_EQ(twice.encode_e4m3(float_of(0x3F880800), fp8_format::e4m3fn), 0x38);
  EXPECT_EQ(twice.encode_e4m3(float_of(0x3F97F800), fp8_format::e4m3fn), 0x3A);
}

TEST(bug_of_elements, nvfp4_values_are_divided) {
  const float scale = decode_e4m3fn(0x07);
  EXPECT_EQ(scale, 0.013671875F);
  const auto v = static_cast<float>(0.02392577938735485);
  EXPECT_EQ(encode_e2m1(nvidia.true_div(v, scale)), 3);
  EXPECT_EQ(encode_e2m1(with("exact_division_by_reciprocal").true_div(v, scale)), 4);
}

TEST(bug_of_elements, every_code_decodes) {
  for (const std::uint8_t code : {0x7F, 0xFF}) EXPECT_TRUE(std::isnan(decode_e4m3fn(code)));
  EXPECT_EQ(decode_e4m3fn(0x7E), 448.0F);
  EXPECT_EQ(bits_of(decode_e4m3fn(0x80)), 0x80000000u);
  EXPECT_EQ(decode_e4m3fn(0x01), 0x1p-9F);
  EXPECT_EQ(with("e4m3_nan_read_as_number").decode_e4m3(0x7F, fp8_format::e4m3fn), 480.0F);
  EXPECT_NEAR(with("e4m3_subnormal_read_as_normal").decode_e4m3(0x01, fp8_format::e4m3fn),
              0.0087890625, 1e-12);
  // Our reader gives code 8 as +0.
  const float read[] = {nvidia.nvfp4_value(0), nvidia.nvfp4_value(1), nvidia.nvfp4_value(8),
                        nvidia.nvfp4_value(9)};
  EXPECT_EQ(bits_of(read[0]), 0u);
  EXPECT_EQ(read[1], 0.5F);
  EXPECT_EQ(bits_of(read[2]), 0u);
  EXPECT_EQ(read[3], -0.5F);
  EXPECT_EQ(with("e2m1_subnormal_read_as_normal").nvfp4_value(1), 0.75F);
}

TEST(bug_of_scales, mxfp4_is_rounded_up) {
  const struct {
    float amax;
    int scale, code;
  } rows[] = {{3, 126, 7}, {3.015625F, 127, 5}, {3.5F, 127, 6}, {4, 127, 6},
              {6, 127, 7}, {6.03125F, 128, 5},  {7, 128, 6},    {8, 128, 6}};
  for (const auto& row : rows) {
    const mxfp4_block block = mxfp4({row.amax});
    EXPECT_EQ(block.scale, row.scale) << row.amax;
    EXPECT_EQ(codes_of(block, 1)[0], row.code) << row.amax;
  }
  EXPECT_EQ(mxfp4({3.015625F}, with("scale_floored")).scale, 126);
  EXPECT_EQ(mxfp4({6.03125F}, with("scale_nearest")).scale, 127);
}

TEST(bug_of_scales, mxfp8_is_rounded_up) {
  const struct {
    float amax;
    int scale, code;
  } rows[] = {
      {448, 127, 0x7E}, {450, 128, 0x76}, {504, 128, 0x78}, {512, 128, 0x78}, {957, 129, 0x77}};
  for (const auto& row : rows) {
    const fp8_result block = fp8({row.amax});
    EXPECT_EQ(block.scale, row.scale) << row.amax;
    EXPECT_EQ(block.codes[0], row.code) << row.amax;
  }
}

TEST(bug_of_scales, a_mantissa_rounds_up_and_none_does_not) {
  EXPECT_EQ(nvidia.integer_scale(1.5F), 128);
  EXPECT_EQ(nvidia.integer_scale(4.0F), 129);
  EXPECT_EQ(with("integer_scale_floored").integer_scale(1.5F), 127);
  EXPECT_EQ(with("integer_scale_high").integer_scale(4.0F), 130);
}

TEST(bug_of_scales, every_power_of_two_is_exact) {
  for (int k = -126; k <= 127; ++k) {
    const float power = std::ldexp(1.0F, k);
    EXPECT_EQ(ceil_log2(power), k);
    EXPECT_EQ(bits_of(nvidia.exp2_int(static_cast<float>(k))), bits_of(power));
    EXPECT_EQ(bits_of(nvidia.exp2_int(static_cast<float>(k))) & 0x807FFFFF, 0u);
    if (k > -126) {
      EXPECT_EQ(ceil_log2(std::nextafter(power, 0.0F)), k);
    }
    EXPECT_EQ(ceil_log2_exact(std::nextafter(power, std::numeric_limits<float>::infinity())),
              k + 1);
  }
  for (int k = -20; k < 100; ++k) {
    EXPECT_EQ(fp8({std::ldexp(448.0F, k)}).scale, 127 + k);
  }
  EXPECT_EQ(fp8({448.0F * 4}, fp8_format::e4m3fn, with("scale_frexp")).scale, 130);
  EXPECT_EQ(fp8({448.0F / 4}, fp8_format::e4m3fn, with("scale_fast_log2")).scale, 126);
}

TEST(bug_of_scales, mla_tiles_take_powers_of_two_where_asked) {
  EXPECT_EQ(nvidia.tile_scale(nvidia, 336, 448, tile_rule::pow2), 1.0F);
  EXPECT_EQ(nvidia.tile_scale(nvidia, 0, 448, tile_rule::pow2), 0x1p-13F);
  const Rules plain = with("tile_scale_not_a_power");
  EXPECT_EQ(plain.tile_scale(plain, 336, 448, tile_rule::pow2), 336 * (1.0F / 448));
}

TEST(bug_of_scales, codes_belong_to_the_scale_that_is_stored) {
  const mxfp4_block block = mxfp4({7});
  EXPECT_EQ(block.scale, 128);
  EXPECT_EQ(decode_ue8m0(block.scale) * decode_e2m1(block.packed[0] & 15), 8.0F);
}

TEST(bug_of_scales, byte_zero_is_the_profiles) {
  EXPECT_EQ(bits_of(ieee.scale_of_byte(0)), 0x00400000u);
  EXPECT_EQ(encode_bf16(ieee.scale_of_byte(0)), 0x0040);
  EXPECT_EQ(nvidia.scale_of_byte(0), 0.0F);  // as the captured bytes have it
}

TEST(bug_of_special_blocks, zeros_have_the_floors_scale) {
  const fp8_result zero = fp8({});
  EXPECT_EQ(zero.scale, 105);
  EXPECT_EQ(zero.codes, std::vector<std::uint8_t>(32, 0));
  EXPECT_EQ(fp8({}, fp8_format::e4m3fn, with("floor_after_division")).scale, 114);
}

TEST(bug_of_special_blocks, a_nan_is_ignored_and_an_infinity_is_not) {
  const float nan = float_of(canonical_nan_bits);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(mxfp4({nan, 6}).scale, 127);
  EXPECT_EQ(codes_of(mxfp4({nan, 6}), 1)[0], 7);
  EXPECT_EQ(mxfp4({infinity, 6}).scale, 254);
  EXPECT_EQ(fp8({nan, 448}).scale, 127);
  EXPECT_EQ(fp8({nan, 448}).codes[0], 0x7E);  // 0xFE where fmin and fmax clamp
  EXPECT_EQ(fp8({nan, 448}, fp8_format::e4m3fn, with("clamp_nan_low")).codes[0], 0xFE);
  EXPECT_EQ(fp8({infinity, 448}).scale, 255);
}

TEST(bug_of_formats, fnuz_and_ocp_differ_by_two_and_in_minus_zero) {
  EXPECT_EQ(encode_e4m3fn(1.0F), 0x38);  // not the number 1
  EXPECT_EQ(encode_e4m3fnuz(1.0F), 0x40);
  EXPECT_EQ(encode_e4m3fn(-0.0F), 0x80);
  EXPECT_EQ(encode_e4m3fnuz(-0.0F), 0x00);
  EXPECT_EQ(decode_e4m3fn(encode_e4m3fnuz(1.0F)), 2.0F);
  // 240 is a code of FNUZ, but not its limit.
  EXPECT_EQ(fp8({240}, fp8_format::e4m3fnuz).scale, 128);
  EXPECT_EQ(fp8({240}, fp8_format::e4m3fnuz, with("fnuz_scale_limit_240")).scale, 127);
}

TEST(bug_of_packing, the_even_element_is_low) {
  EXPECT_EQ(mxfp4({1, 6}).packed[0], 0x72);
  EXPECT_EQ(mxfp4({1, 6}, with("nibbles_swapped")).packed[0], 0x27);
}

TEST(bug_of_layout, a_swizzle_gives_each_scale_its_own_place) {
  std::set<std::int64_t> places, straight;
  for (std::int64_t row = 0; row < 129; ++row) {
    for (std::int64_t group = 0; group < 5; ++group) {
      EXPECT_TRUE(places.insert(nvidia.swizzled_offset(row, group, 5)).second);
    }
  }
  EXPECT_EQ(nvidia.swizzled_offset(1, 0, 5), 16);
  EXPECT_EQ(nvidia.swizzled_offset(32, 0, 5), 4);
  EXPECT_NE(with("swizzle_missing").swizzled_offset(1, 0, 5), 16);
}

TEST(bug_of_layout, pages_hold_values_then_scales) {
  // Two tokens of 128 + 4 bytes.
  EXPECT_EQ(nvidia.data_offset(1, 0, 2, 128, 4), 128);
  EXPECT_EQ(nvidia.scale_offset(1, 0, 2, 128, 4), 2 * 128 + 4);
  EXPECT_EQ(with("records_interleaved").data_offset(1, 0, 2, 128, 4), 132);
  EXPECT_EQ(with("records_interleaved").scale_offset(1, 0, 2, 128, 4), 132 + 128);
}

TEST(bug_of_layout, page_offsets_take_64_bits) {
  const struct {
    std::int64_t page, stride;
  } rows[] = {{2066, 1039680}, {57359, 37440}, {14340, 149760},
              {63551, 33792},  {254201, 8448}, {364723, 11776}};
  for (const auto& row : rows) {
    EXPECT_EQ(nvidia.page_offset(row.page, row.stride, 0, 0), row.page * row.stride);
    EXPECT_NE(with("page_offset_i32").page_offset(row.page, row.stride, 0, 0),
              row.page * row.stride)
        << row.page;
  }
  EXPECT_EQ(with("page_offset_i32").page_offset(2065, 1039680, 0, 0), 2065LL * 1039680);
}

TEST(bug_of_slots, negative_ones_change_nothing) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t padding : {std::int64_t{-1}, std::int64_t{-2}, lowest}) {
    buffer k{"k", dtype::bf16, dense({3, 512}), std::vector<std::byte>(3 * 1024, std::byte{0x3F})};
    buffer cache{"k_cache", dtype::u8, dense({2, 3, 528}),
                 std::vector<std::byte>(2 * 3 * 528, canary)};
    buffer slots{"slot_mapping", dtype::i64, dense({3}), std::vector<std::byte>(24)};
    store(slots.view().element(0), std::int64_t{0});
    store(slots.view().element(1), padding);
    store(slots.view().element(2), std::int64_t{5});
    std::vector<buffer> inputs = {k, cache, slots};
    const kernel_contract& contract = contract_of("quantize_and_insert_k_cache");
    const attribute_map attributes = {{"block_size", std::int64_t{3}},
                                      {"use_fnuz", std::int64_t{0}},
                                      {"bytes_per_token", std::int64_t{528}}};
    const auto changed = [&](const Rules& rules) {
      const std::vector<buffer> after =
          expected_results(contract, attributes, inputs, canary, rules);
      std::set<std::int64_t> tokens;
      for (std::int64_t i = 0; i < 2 * 3 * 528; ++i) {
        if (after[0].bytes[static_cast<std::size_t>(i)] == canary) continue;
        const std::int64_t in_page = i % (3 * 528);
        tokens.insert(i / (3 * 528) * 3 +
                      (in_page < 3 * 512 ? in_page / 512 : (in_page - 3 * 512) / 16));
      }
      return tokens;
    };
    EXPECT_EQ(changed(nvidia), (std::set<std::int64_t>{0, 5})) << padding;
    if (padding == -1) {
      EXPECT_EQ(changed(with("negative_slots_to_page_0")), (std::set<std::int64_t>{0, 2, 5}));
    }
    if (padding == -2) {
      EXPECT_EQ(changed(with("negative_slots_to_last_page")), (std::set<std::int64_t>{0, 4, 5}));
      EXPECT_EQ(changed(with("slots_below_minus_one")), (std::set<std::int64_t>{0, 1, 5}));
    }
  }
}

TEST(bug_of_rope, neighbours_turn_together) {
  EXPECT_EQ(nvidia.rope_pair_of(0, 64).even, 0);
  EXPECT_EQ(nvidia.rope_pair_of(0, 64).odd, 1);
  EXPECT_EQ(with("rope_halves").rope_pair_of(0, 64).odd, 32);
}

TEST(bug_of_rope, a_product_is_not_rounded_before_the_sum) {
  // (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24: the last part is lost where the square is rounded first.
  const float x = 1 + 0x1p-12F;
  EXPECT_EQ(nvidia.rope_even(x, 1, x, 1), 0x1p-11F + 0x1p-24F);
  EXPECT_EQ(with("rope_even_apart").rope_even(x, 1, x, 1), 0x1p-11F);
}

TEST(bug_of_norms, f32_parameters_keep_their_bits) {
  EXPECT_EQ(nvidia.norm_parameter(1 + 0x1p-12F), 1 + 0x1p-12F);
  EXPECT_EQ(with("parameters_by_bf16").norm_parameter(1 + 0x1p-12F), 1.0F);
}

template <class T>
buffer of(const char* name, dtype type, std::vector<std::int64_t> shape,
          const std::vector<T>& values) {
  buffer made{name, type, dense(std::move(shape)),
              std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}
std::vector<std::int32_t> i32_of(const buffer& b) {
  std::vector<std::int32_t> values(b.bytes.size() / 4);
  std::memcpy(values.data(), b.bytes.data(), b.bytes.size());
  return values;
}

// Outputs hold stale values before the call: what no entry fills says so.
TEST(bug_of_outputs, a_row_behind_its_length_is_minus_one) {
  std::vector<buffer> inputs = {of<std::int32_t>("topk_indices", dtype::i32, {1, 2}, {1, 7}),
                                of<std::int32_t>("query_start_loc", dtype::i32, {2}, {0, 1}),
                                of<std::int32_t>("seq_lens", dtype::i32, {1}, {3}),
                                of<std::int32_t>("gather_lens", dtype::i32, {1}, {3})};
  const attribute_map attributes = {{"window_size", std::int64_t{2}},
                                    {"compress_ratio", std::int64_t{1}},
                                    {"topk", std::int64_t{2}},
                                    {"M", std::int64_t{8}},
                                    {"N", std::int64_t{4}}};
  const auto row = [&](const Rules& rules) {
    const std::vector<buffer> after = expected_results(contract_of("combine_topk_swa_indices"),
                                                       attributes, inputs, std::byte{0x7F}, rules);
    EXPECT_EQ(i32_of(after[1]), std::vector<std::int32_t>{4});
    return i32_of(after[0]);
  };
  // Entry 1; 7 is past the compressed rows; positions 1 and 2 of the window behind 4 such rows.
  std::vector<std::int32_t> right(128, -1);
  right[0] = 1;
  right[2] = 5;
  right[3] = 6;
  EXPECT_EQ(row(nvidia), right);
  EXPECT_EQ(row(with("topk_filled_with_zero")).back(), 0);
}

TEST(bug_of_outputs, what_only_pads_is_zero) {
  std::vector<buffer> inputs = {
      {"index_q", dtype::bf16, dense({1, 1, 128}), std::vector<std::byte>(256)},
      {"index_weights", dtype::bf16, dense({1, 1}), std::vector<std::byte>(2)}};
  const attribute_map attributes = {{"weight_scale", 1.0}, {"padded_num_heads", std::int64_t{64}}};
  for (const std::byte stale : {std::byte{0xFF}, std::byte{0xFE}, std::byte{0x7F}}) {
    const auto after = [&](const Rules& rules) {
      return expected_results(contract_of("mxfp4_q_quant"), attributes, inputs, stale, rules);
    };
    const std::vector<buffer> right = after(nvidia), left = after(with("padded_heads_left"));
    for (std::size_t i = 0; i < right.size(); ++i) {
      const auto live = static_cast<std::ptrdiff_t>(right[i].bytes.size() / 64);
      EXPECT_EQ(std::count(right[i].bytes.begin() + live, right[i].bytes.end(), std::byte{0}),
                63 * live);
      EXPECT_EQ(left[i].bytes.back(), stale);
    }
  }
}

// Scale rows up to a tile's 128, and blocks up to 4, are zero: no NaN and no stale scale is read.
TEST(bug_of_outputs, scales_that_only_align_are_zero) {
  std::vector<buffer> inputs = {
      {"qr", dtype::bf16, dense({1, 32}), std::vector<std::byte>(64, std::byte{0x3F})},
      {"kv", dtype::bf16, dense({1, 1}), std::vector<std::byte>(2, std::byte{0x3F})},
      {"q_weight", dtype::bf16, dense({32}), std::vector<std::byte>(64, std::byte{0x3F})},
      {"kv_weight", dtype::bf16, dense({1}), std::vector<std::byte>(2, std::byte{0x3F})}};
  for (const std::byte stale : {std::byte{0xFF}, std::byte{0x7F}}) {
    const auto scales = [&](const Rules& rules) {
      return expected_results(contract_of("fused_q_kv_rmsnorm_quant"), {{"eps", 1e-6}}, inputs,
                              stale, rules)[1]
          .bytes;
    };
    const std::vector<std::byte> right = scales(nvidia);
    ASSERT_EQ(right.size(), 512u);
    EXPECT_EQ(std::count(right.begin(), right.end(), std::byte{0}), 511);
    const std::vector<std::byte> left = scales(with("padding_rows_left"));
    EXPECT_NE(std::count(left.begin(), left.end(), stale), 0);
  }
}

// Entries of another request's rows, or of none, are the caller's fault; negative ones are -1, and
// do not count.
TEST(bug_of_indices, a_negative_entry_is_minus_one_and_not_counted) {
  std::vector<buffer> inputs = {
      of<std::int32_t>("topk_indices", dtype::i32, {1, 4}, {5, -1, -7, 0}),
      of<std::int32_t>("token_to_req_indices", dtype::i32, {1}, {0}),
      of<std::int32_t>("block_table", dtype::i32, {1, 2}, {9, 3}),
      of<std::uint8_t>("is_valid_token", dtype::boolean, {1}, {1})};
  const auto after = [&](const Rules& rules) {
    return expected_results(contract_of("compute_global_topk_indices_and_lens"),
                            {{"block_size", std::int64_t{4}}}, inputs, canary, rules);
  };
  EXPECT_EQ(i32_of(after(nvidia)[0]), (std::vector<std::int32_t>{13, -1, -1, 36}));
  EXPECT_EQ(i32_of(after(nvidia)[1]), std::vector<std::int32_t>{2});
  EXPECT_NE(i32_of(after(with("indices_below_minus_one"))[0])[2], -1);
}

// Kinds that a whole case shows, by the flag that such cases carry.
struct bug_kind {
  const char* flag;
  std::vector<const char*> kernels;
};
TEST(bug_kinds, have_flagged_smoke_cases) {
  const bug_kind kinds[] = {
      {"PaddedRows", {"fused_inv_rope_fp8_quant", "fused_q_kv_rmsnorm_quant"}},
      {"PaddedHeads", {"mxfp4_q_quant"}},
      {"StridedPage",
       {"quantize_and_insert_k_cache", "dequantize_and_gather_k_cache", "rope_quant_insert",
        "indexer_k_norm_quant_insert", "mxfp4_k_norm_quant_insert", "dsa_fused_prologue"}},
      {"CacheOffset",
       {"quantize_and_insert_k_cache", "dequantize_and_gather_k_cache", "rope_quant_insert",
        "indexer_k_norm_quant_insert"}},
      {"Unaligned", {"indexer_k_norm_quant_insert", "dequantize_and_gather_k_cache"}},
      {"UnreadColumns", {"combine_topk_swa_indices", "build_flashinfer_mixed_sparse_indices"}},
      {"OddWidth", {"fused_indexer_q_rope_quant"}},
      {"OddHeads", {"mxfp4_q_quant", "fused_indexer_q_rope_quant"}},
      {"F32Weights", {"fused_q_kv_rmsnorm_quant", "fused_save_compress_norm"}},
      {"DistinctScales", {"fused_q_kv_rmsnorm_quant", "quantize_and_insert_k_cache"}}};
  for (const bug_kind& kind : kinds) {
    for (const char* kernel : kind.kernels) {
      const std::vector<case_spec> smoke = cases_of(kernel, level::smoke, 1);
      EXPECT_TRUE(std::any_of(smoke.begin(), smoke.end(),
                              [&](const case_spec& c) {
                                return std::count(c.flags.begin(), c.flags.end(), kind.flag) != 0;
                              }))
          << kernel << ": " << kind.flag;
    }
  }
}

// No tokens: a division by zero, or a grid of no blocks.
TEST(bug_kinds, have_an_empty_batch_for_every_kernel) {
  for (const kernel_contract* contract : contracts()) {
    const std::vector<case_spec> smoke = cases_of(contract->name, level::smoke, 1);
    EXPECT_TRUE(std::any_of(smoke.begin(), smoke.end(), [](const case_spec& c) {
      return std::any_of(c.flags.begin(), c.flags.end(), [](const std::string& f) {
        return f == "EmptyBatch" || f == "EmptyRows";
      });
    })) << contract->name;
  }
}

}  // namespace
}  // namespace kvcts
