// Records worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/tests/key_calls.h"

namespace kvcts {
namespace {

constexpr char kernel[] = "indexer_k_norm_quant_insert";
using byte_list = std::vector<std::uint8_t>;

std::uint16_t alternating(std::int64_t, std::int64_t i) { return i % 2 == 0 ? 0x3F80 : 0xBF80; }

struct record {
  byte_list codes;
  float scale;
};
// Of a row of +-weight + bias, or of `bits`, in the only slot.
record record_of(key_options o, profile p = profile::nvidia,
                 std::uint16_t (*bits)(std::int64_t, std::int64_t) = alternating) {
  o.pages = o.block_size = 1;
  call_builder b = standalone_call(kernel, o, bits);
  b.run(rules_for(p));
  const byte_list cache = b.bytes("kv_cache");
  const auto codes = cache.begin() + 8;
  record r{{codes, codes + o.dims}, 0};
  std::memcpy(&r.scale, &*(codes + o.dims), 4);
  return r;
}

byte_list pairs(std::int64_t dims, std::uint8_t even, std::uint8_t odd) {
  byte_list list;
  for (std::int64_t i = 0; i < dims; ++i) list.push_back(i % 2 == 0 ? even : odd);
  return list;
}

TEST(indexer_k_norm_quant_insert, hand_computed_rows) {
  struct row {
    float weight, scale;
    std::uint8_t code;
    bool fnuz;
  };
  for (const row& r :
       {row{448, 1, 0x7E, false}, row{449, 2, 0x76, false}, row{3.5F, 0x1p-7F, 0x7E, false},
        row{1, 0x1p-8F, 0x78, false}, row{224, 1, 0x7E, true}, row{448, 2, 0x7E, true},
        row{240, 2, 0x77, true}, row{1, 0x1p-7F, 0x78, true}}) {
    for (const std::int64_t dims : {32, 64, 128, 256, 512, 1024}) {
      for (const profile p : {profile::nvidia, profile::ieee}) {
        key_options o;
        o.dims = dims;
        o.weight = r.weight;
        o.fnuz = r.fnuz;
        const record got = record_of(o, p);
        EXPECT_EQ(got.scale, r.scale) << r.weight;
        EXPECT_EQ(got.codes, pairs(dims, r.code, r.code | 0x80)) << r.weight;
      }
    }
  }
}

// 1e-4 / 448 = 2^-22.1, 1e-4 / 224 = 2^-21.1.
TEST(indexer_k_norm_quant_insert, zero_rows_have_the_scale_of_the_floor) {
  key_options o;
  o.eps = 1e-6;
  o.weight = 0;
  o.bias = -0.0F;  // y: +0 and -0
  record got = record_of(o);
  EXPECT_EQ(got.scale, 0x1p-22F);
  EXPECT_EQ(got.codes, pairs(128, 0, 0x80));
  o.fnuz = true;  // no -0
  got = record_of(o);
  EXPECT_EQ(got.scale, 0x1p-21F);
  EXPECT_EQ(got.codes, pairs(128, 0, 0));
}

TEST(indexer_k_norm_quant_insert, bad_rows_are_all_nan) {
  const auto one_nan = [](std::int64_t, std::int64_t i) {
    return static_cast<std::uint16_t>(i == 5 ? 0xFFC3 : 0x3F80);
  };
  const auto one_infinity = [](std::int64_t, std::int64_t i) {
    return static_cast<std::uint16_t>(i == 5 ? 0xFF80 : 0x3F80);
  };
  for (const auto bits : {+one_nan, +one_infinity}) {
    key_options o;
    record got = record_of(o, profile::nvidia, bits);
    EXPECT_EQ(got.scale, 0x1p-22F);
    EXPECT_EQ(got.codes, pairs(128, 0x7F, 0x7F));
    o.fnuz = true;
    got = record_of(o, profile::nvidia, bits);
    EXPECT_EQ(got.scale, 0x1p-21F);
    EXPECT_EQ(got.codes, pairs(128, 0x80, 0x80));
  }
}

TEST(indexer_k_norm_quant_insert, infinities_are_nan_under_an_infinite_scale) {
  key_options o;
  o.pages = o.block_size = 1;
  call_builder b = standalone_call(kernel, o, alternating);
  store(b.get().tensor("norm_bias").element(9), std::numeric_limits<float>::infinity());
  b.run(rules_for(profile::nvidia));
  const byte_list cache = b.bytes("kv_cache");
  byte_list expected = pairs(128, 0, 0x80);
  expected[9] = 0x7F;
  EXPECT_EQ(byte_list(cache.begin() + 8, cache.begin() + 136), expected);
  EXPECT_EQ(byte_list(cache.begin() + 136, cache.begin() + 140), (byte_list{0, 0, 0x80, 0x7F}));
}

TEST(indexer_k_norm_quant_insert, pages_hold_values_then_scales) {
  key_options o;
  o.tokens = 5;
  o.slots = {4, -1, 1, -7};  // row 4 is past it
  o.pages = 2;
  o.block_size = 3;
  o.page_gap = 20;
  o.weight = 448;
  call_builder b = standalone_call(kernel, o, alternating);
  b.run(rules_for(profile::nvidia));
  const byte_list cache = b.bytes("kv_cache");
  byte_list expected(cache.size(), 0xCC);
  const byte_list codes = pairs(128, 0x7E, 0xFE);
  for (const std::ptrdiff_t page : {8, 8 + 3 * 132 + 20}) {
    const byte_list one = {0, 0, 0x80, 0x3F};  // 1.0
    std::copy(codes.begin(), codes.end(), expected.begin() + page + 128);
    std::copy(one.begin(), one.end(), expected.begin() + page + 3 * 128 + 4);
  }
  EXPECT_EQ(cache, expected);
  const auto fill = b.bytes("topk_indices_buffer");
  byte_list filled(fill.size(), 0xCC);
  for (std::size_t row = 0; row < 5; ++row) {
    std::fill_n(filled.begin() + static_cast<std::ptrdiff_t>(4 * (1 + 5 * row)), 12, 0xFF);
  }
  EXPECT_EQ(fill, filled);
}

TEST(indexer_k_norm_quant_insert, refuses_pages_that_misalign_scales) {
  key_options o;
  o.page_gap = 6;
  EXPECT_EQ(standalone_call(kernel, o, alternating).refusal(),
            std::string(kernel) +
                ": kv_cache: page stride is 270 bytes, must be a multiple of 4 "
                "(f32 scales lie inside)");
  o.page_gap = 0;
  o.slots = {2, 4};
  EXPECT_EQ(standalone_call(kernel, o, alternating).refusal(), "");  // one token: slot 4 is unused
  o.slots = {4};
  EXPECT_NE(standalone_call(kernel, o, alternating).refusal(), "");
}

}  // namespace
}  // namespace kvcts
