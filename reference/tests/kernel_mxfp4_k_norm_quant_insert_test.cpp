// Records worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/tests/key_calls.h"

namespace kvcts {
namespace {

constexpr char kernel[] = "mxfp4_k_norm_quant_insert";
using byte_list = std::vector<std::uint8_t>;

// +1 -1 +1 -1 ...: LayerNorm with eps 0 gives +-weight + bias.
std::uint16_t alternating(std::int64_t, std::int64_t i) { return i % 2 == 0 ? 0x3F80 : 0xBF80; }

byte_list filled(std::size_t n, std::uint8_t value) { return byte_list(n, value); }
byte_list slice(const byte_list& from, std::size_t at, std::size_t n) {
  return {from.begin() + static_cast<std::ptrdiff_t>(at),
          from.begin() + static_cast<std::ptrdiff_t>(at + n)};
}

TEST(mxfp4_k_norm_quant_insert, record_of_a_hand_computed_row) {
  for (const std::int64_t dims : {32, 64, 128, 256, 512, 1024}) {
    for (const std::int64_t warps : {0, 1, 2, 4}) {
      for (const profile p : {profile::nvidia, profile::ieee}) {
        key_options o;
        o.dims = dims;
        o.warps = warps;
        o.weight = 6;  // y = +-6: scale 2^0, codes 7 and F
        o.slots = {3};
        call_builder b = standalone_call(kernel, o, alternating);
        b.run(rules_for(p));
        const byte_list cache = b.bytes("kv_cache");
        const auto d = static_cast<std::size_t>(dims);
        const std::size_t page = 8 + 2 * (d / 2 + d / 32);
        byte_list expected = filled(cache.size(), 0xCC);
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(page + d / 2), d / 2, 0xF7);
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(page + d + d / 32), d / 32, 127);
        ASSERT_EQ(cache, expected) << dims << " dims, " << warps << " warps";
      }
    }
  }
}

TEST(mxfp4_k_norm_quant_insert, scale_of_each_block_is_its_own) {
  key_options o;
  o.pages = o.block_size = 1;
  call_builder b = standalone_call(kernel, o, alternating);
  // y = +-1 in block 0, +-6.03125 in block 1 (next scale), +-4 in block 2, 0 in block 3.
  const float weights[] = {1, 6.03125F, 4, 0};
  for (std::int64_t i = 0; i < 128; ++i) {
    store(b.get().tensor("norm_weight").element(i), weights[i / 32]);
  }
  b.run(rules_for(profile::nvidia));
  const byte_list cache = b.bytes("kv_cache");
  // 1 / 2^-2 = 4: code 6; 6.03125 / 2 = 3.016: code 5; 4: code 6; -0 + 0 is +0.
  EXPECT_EQ(slice(cache, 8, 16), filled(16, 0xE6));
  EXPECT_EQ(slice(cache, 24, 16), filled(16, 0xD5));
  EXPECT_EQ(slice(cache, 40, 16), filled(16, 0xE6));
  EXPECT_EQ(slice(cache, 56, 16), filled(16, 0));
  EXPECT_EQ(slice(cache, 72, 4), (byte_list{125, 128, 127, 1}));
}

TEST(mxfp4_k_norm_quant_insert, bad_rows_are_all_nan) {
  for (const std::uint16_t bad : {0x7FC1, 0xFF81, 0x7F80, 0xFF80}) {
    key_options o;
    o.pages = o.block_size = 1;
    call_builder b = standalone_call(kernel, o, alternating);
    store(b.get().tensor("k").element(0, 77), bad);
    b.run(rules_for(profile::nvidia));
    EXPECT_EQ(slice(b.bytes("kv_cache"), 8, 64), filled(64, 0x77));
    EXPECT_EQ(slice(b.bytes("kv_cache"), 72, 4), filled(4, 1));
  }
}

TEST(mxfp4_k_norm_quant_insert, infinite_variance_and_constant_rows_store_the_bias) {
  for (const bool huge : {true, false}) {
    key_options o;
    o.pages = o.block_size = 1;
    o.bias = -3;
    o.eps = 1e-6;
    // +-2^100, or zeros of both signs.
    call_builder b = standalone_call(kernel, o, [&](std::int64_t, std::int64_t i) {
      return static_cast<std::uint16_t>((huge ? 0x7180 : 0) | (i % 2 == 0 ? 0 : 0x8000));
    });
    b.run(rules_for(profile::nvidia));
    // -3 = -6 * 2^-1.
    EXPECT_EQ(slice(b.bytes("kv_cache"), 8, 64), filled(64, 0xFF));
    EXPECT_EQ(slice(b.bytes("kv_cache"), 72, 4), filled(4, 126));
  }
}

TEST(mxfp4_k_norm_quant_insert, an_infinite_weight_makes_infinities) {
  key_options o;
  o.pages = o.block_size = 1;
  o.weight = std::numeric_limits<float>::infinity();
  call_builder b = standalone_call(kernel, o, alternating);
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(slice(b.bytes("kv_cache"), 8, 64), filled(64, 0xF7));
  EXPECT_EQ(slice(b.bytes("kv_cache"), 72, 4), filled(4, 254));
}

TEST(mxfp4_k_norm_quant_insert, bf16_parameters_are_read_exactly) {
  key_options o;
  o.pages = o.block_size = 1;
  call_builder b = standalone_call(kernel, o, alternating);
  b.add("norm_weight", dtype::bf16, {128}, std::vector<std::uint16_t>(128, 0x4040));  // 3
  b.add("norm_bias", dtype::bf16, {128}, std::vector<std::uint16_t>(128, 0x3F80));    // 1
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(slice(b.bytes("kv_cache"), 8, 64), filled(64, 0xC6));  // 4 and -2
  EXPECT_EQ(slice(b.bytes("kv_cache"), 72, 4), filled(4, 127));
}

TEST(mxfp4_k_norm_quant_insert, slots_choose_the_rows) {
  key_options o;
  o.tokens = 6;
  o.slots = {-1, 5, -7, std::numeric_limits<std::int64_t>::min()};  // rows 4 and 5 are past it
  o.pages = 3;
  o.page_gap = 13;
  o.weight = 6;
  call_builder b = standalone_call(kernel, o, alternating);
  b.run(rules_for(profile::nvidia));
  const byte_list cache = b.bytes("kv_cache");
  byte_list expected = filled(cache.size(), 0xCC);
  const std::ptrdiff_t page = 8 + 2 * (2 * 68 + 13);
  std::fill_n(expected.begin() + page + 64, 64, 0xF7);
  std::fill_n(expected.begin() + page + 128 + 4, 4, 127);
  EXPECT_EQ(cache, expected);
}

TEST(mxfp4_k_norm_quant_insert, topk_rows_are_filled_whatever_the_slot) {
  key_options o;
  o.tokens = 3;
  o.slots = {-1};
  call_builder b = standalone_call(kernel, o, alternating);
  b.run(rules_for(profile::nvidia));
  const auto fill = b.bytes("topk_indices_buffer");
  byte_list expected = filled(fill.size(), 0xCC);
  for (std::size_t row = 0; row < 3; ++row) {  // of four; 3 columns at a stride of 5, offset 1
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(4 * (1 + 5 * row)), 12, 0xFF);
  }
  EXPECT_EQ(fill, expected);
}

TEST(mxfp4_k_norm_quant_insert, num_tokens_limits_rows_and_slots) {
  key_options o;
  o.tokens = 2;
  o.slots = {0, 1, 1000000};  // the third is past the cache, but no token is there
  call_builder b = standalone_call(kernel, o, alternating);
  b.get().attributes["num_tokens"] = std::int64_t{0};
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(b.bytes("kv_cache"), filled(b.bytes("kv_cache").size(), 0xCC));
  EXPECT_EQ(b.bytes("topk_indices_buffer"), filled(b.bytes("topk_indices_buffer").size(), 0xCC));
  b.get().attributes["num_tokens"] = std::int64_t{2};
  EXPECT_EQ(b.refusal(), "");
}

TEST(mxfp4_k_norm_quant_insert, num_warps_shows_in_the_bytes_of_hard_rows) {
  key_options o;
  o.tokens = 64;
  o.pages = 32;
  o.slots.clear();
  for (std::int64_t t = 0; t < 64; ++t) o.slots.push_back(t);
  const auto bytes_of = [&](std::int64_t warps) {
    o.warps = warps;
    call_builder b = standalone_call(kernel, o, [](std::int64_t t, std::int64_t i) {
      return key_bits(static_cast<std::uint64_t>(t * 128 + i));
    });
    Rules rules = rules_for(profile::nvidia);
    // Shows the low bits of d*r, which codes round away.
    rules.scale_and_shift = [](float normalized, float, float) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &normalized, sizeof bits);
      return static_cast<float>(bits % 13);
    };
    b.run(rules);
    return b.bytes("kv_cache");
  };
  EXPECT_EQ(bytes_of(0), bytes_of(1));
  EXPECT_NE(bytes_of(1), bytes_of(2));
  EXPECT_NE(bytes_of(1), bytes_of(4));
  EXPECT_NE(bytes_of(2), bytes_of(4));
}

TEST(mxfp4_k_norm_quant_insert, refuses_what_breaks_a_precondition) {
  const auto refusal = [](const std::function<void(key_options&)>& change,
                          const std::function<void(call_builder&)>& spoil) {
    key_options o;
    change(o);
    call_builder b = standalone_call(kernel, o, alternating);
    spoil(b);
    return b.refusal();
  };
  const auto unchanged = [](key_options&) {};
  const auto set = [](const char* name, std::int64_t value) {
    return [=](call_builder& b) { b.get().attributes[name] = value; };
  };
  const std::string of = std::string(kernel) + ": ";
  EXPECT_EQ(refusal(unchanged, set("num_warps", 3)), of + "num_warps: is 3, must be 1, 2 or 4");
  EXPECT_EQ(refusal(unchanged, set("num_tokens", -1)),
            of + "num_tokens: is -1, must not be negative");
  EXPECT_EQ(refusal(unchanged, set("num_tokens", 9)),
            of + "topk_indices_buffer: has 2 rows, must have at least the 9 of num_tokens");
  EXPECT_EQ(refusal(
                [](key_options& o) {
                  o.slots = {-1, -1};
                },
                set("num_tokens", 2)),
            of + "k: has 1 rows, must have one for each of the 2 tokens that the 2 slots of "
                 "slot_mapping name");
  EXPECT_EQ(refusal([](key_options& o) { o.dims = 96; }, set("num_warps", 1)),
            of + "k: has 96 dims, must have a power of two of them from 32 to 1024");
  EXPECT_EQ(refusal([](key_options& o) { o.dims = 2048; }, set("num_warps", 1)),
            of + "k: has 2048 dims, must have a power of two of them from 32 to 1024");
  EXPECT_EQ(refusal([](key_options& o) { o.block_size = 0; }, set("num_warps", 1)),
            of + "kv_cache: has pages of 0 tokens, must have at least 1");
  EXPECT_EQ(refusal([](key_options& o) { o.slots = {4}; }, set("num_warps", 1)),
            of + "slot_mapping: slot 4 of token 0 is past the cache, must be below 2 pages * 2 "
                 "tokens of kv_cache");
}

}  // namespace
}  // namespace kvcts
