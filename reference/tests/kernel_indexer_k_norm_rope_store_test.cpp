// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/tests/head_rows.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

// Rows of ones have r = 1 where eps is 0, so that the weight is the normalized row.
struct problem {
  std::vector<float> weight = std::vector<float>(128, 1.0F);
  std::vector<std::int64_t> positions = {0};
  std::vector<std::int64_t> slots = {0};
  std::int64_t ratio = 1;
  bool fp4 = false, shuffle = false;
  std::int64_t pages = 1, block_size = 1, gap = 0;
};

call_builder call_of(const problem& p) {
  call_builder b("indexer_k_norm_rope_store");
  const auto rows = static_cast<std::int64_t>(p.positions.size());
  tensor_view& k = b.add("k_pre", dtype::bf16, {{rows, 128}, {131, 1}, 3});
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t d = 0; d < 128; ++d) store(k.element(t, d), encode_bf16(1.0F));
  }
  b.i64("positions", p.positions);
  add_turns(b, "cos_sin_cache", 4, 64);
  b.add("rms_norm_weight", dtype::bf16, {128}, bf16_bits(p.weight, 128));
  const std::int64_t record = p.fp4 ? 68 : 132;
  b.add("k_cache", dtype::u8,
        {{p.pages, p.block_size, record}, {p.block_size * record + p.gap, record, 1}, 0});
  b.i64("kv_slot_mapping", p.slots);
  auto& attributes = b.get().attributes;
  attributes["rms_norm_eps"] = 0.0;
  attributes["compress_ratio"] = p.ratio;
  attributes["use_fp4_cache"] = std::int64_t{p.fp4 ? 1 : 0};
  attributes["shuffle"] = std::int64_t{p.shuffle ? 1 : 0};
  return b;
}

std::vector<std::uint8_t> cache_of(const problem& p, profile with = profile::nvidia) {
  call_builder b = call_of(p);
  b.run(rules_for(with));
  return b.bytes("k_cache");
}

TEST(indexer_k_norm_rope_store, fp8) {
  // 1 / 448: 2^-8 = 0x3B800000, 256 -> 0x78.
  const auto kept = cache_of({});
  EXPECT_EQ(ints(kept, 0, 128), std::vector<int>(128, 0x78));
  EXPECT_EQ(ints(kept, 128, 4), (std::vector<int>{0x00, 0x00, 0x80, 0x3B}));
  EXPECT_EQ(ints(kept, 132, 16), std::vector<int>(16, 0xCC));
  const auto turned = cache_of({.positions = {1}});
  EXPECT_EQ(ints(turned, 0, 64), std::vector<int>(64, 0x78));
  for (std::size_t d = 64; d < 128; d += 2) {
    EXPECT_EQ(ints(turned, d, 2), (std::vector<int>{0xF8, 0x78})) << d;
  }
}

TEST(indexer_k_norm_rope_store, bf16_before_the_rotation_and_after) {
  // y = 1.75 + 2^-9 is bf16 1.75; times 1 + 2^-9 it is bf16 1.75 again, so that 2^-8 is enough.
  call_builder b = call_of({});
  std::vector<float> weight(128, 1.0F);
  weight[64] = 1.75F + 0x1p-9F;
  b.add("rms_norm_weight", dtype::f32, {128}, weight);
  std::vector<float> table(64, 0.0F);
  table[0] = 1.0F + 0x1p-9F;
  b.add("cos_sin_cache", dtype::f32, {1, 64}, table);
  b.run(rules_for(profile::nvidia));
  const auto cache = b.bytes("k_cache");
  EXPECT_EQ(cache[64], 0x7E);
  EXPECT_EQ(ints(cache, 128, 4), (std::vector<int>{0x00, 0x00, 0x80, 0x3B}));
}

TEST(indexer_k_norm_rope_store, mxfp4) {
  // 1 / 6: 2^-2, byte 125, 4 -> code 6.
  const auto cache = cache_of({.fp4 = true});
  EXPECT_EQ(ints(cache, 0, 64), std::vector<int>(64, 0x66));
  EXPECT_EQ(ints(cache, 64, 4), std::vector<int>(4, 125));
  EXPECT_EQ(ints(cache, 68, 16), std::vector<int>(16, 0xCC));
}

TEST(indexer_k_norm_rope_store, two_pages_are_segregated) {
  // Slots 1 and 2 of pages of two tokens with a gap of 12 bytes.
  const auto cache =
      cache_of({.positions = {0, 0}, .slots = {2, 1}, .pages = 2, .block_size = 2, .gap = 12});
  std::vector<std::uint8_t> expected(cache.size(), 0xCC);
  const std::size_t page = 2 * 132 + 12;
  const auto put = [&](std::size_t first, std::size_t position) {
    for (std::size_t d = 0; d < 128; ++d) expected[first + position * 128 + d] = 0x78;
    const std::uint8_t scale[] = {0x00, 0x00, 0x80, 0x3B};
    for (std::size_t i = 0; i < 4; ++i) expected[first + 256 + position * 4 + i] = scale[i];
  };
  put(page, 0);
  put(0, 1);
  EXPECT_EQ(cache, expected);
}

TEST(indexer_k_norm_rope_store, groups_of_two) {
  // Position 1 ends its group, which begins at position 0; 2 ends none; 3 begins at 2.
  const auto cache =
      cache_of({.positions = {1, 2, 3, -7}, .slots = {0, 1, 2, -1}, .ratio = 2, .block_size = 3});
  for (const std::size_t position : {0U, 2U}) {
    EXPECT_EQ(ints(cache, position * 128, 128), std::vector<int>(128, 0x78));
  }
  EXPECT_EQ(ints(cache, 128, 128), std::vector<int>(128, 0xCC));
  EXPECT_EQ(ints(cache, 3 * 128 + 4, 4), std::vector<int>(4, 0xCC));
}

TEST(indexer_k_norm_rope_store, tiles) {
  // Powers of two tell the dims apart: dim d has 2^(d % 15).
  std::vector<float> weight;
  for (int d = 0; d < 128; ++d) weight.push_back(static_cast<float>(1 << d % 15));
  const auto cache = cache_of(
      {.weight = weight, .slots = {32 + 17}, .shuffle = true, .pages = 2, .block_size = 32});
  // amax 2^14: 2^14 / 448 -> scale 2^6; 2^8 at the top.
  const std::size_t page = 32 * 132;
  std::vector<std::uint8_t> expected(cache.size(), 0xCC);
  for (std::size_t d = 0; d < 128; ++d) {
    const int exponent = static_cast<int>(d % 15) - 6;
    const int code = exponent >= -6 ? (exponent + 7) << 3 : 0;
    // Tile row 1 (tokens 16..31), tile d / 16, token 1 of the tile.
    expected[page + 2048 + d / 16 * 256 + 16 + d % 16] = static_cast<std::uint8_t>(code);
  }
  const std::uint8_t scale[] = {0x00, 0x00, 0x80, 0x42};
  for (std::size_t i = 0; i < 4; ++i) expected[page + 32 * 128 + 17 * 4 + i] = scale[i];
  EXPECT_EQ(cache, expected);
}

TEST(indexer_k_norm_rope_store, pairs_that_do_not_rotate_run_the_formula) {
  problem p;
  p.weight[0] = -0.0F;
  p.weight[1] = -1.0F;  // -0 becomes +0
  p.weight[2] = -0.0F;
  p.weight[3] = 1.0F;  // -0 stays
  const auto zeros = cache_of(p);
  EXPECT_EQ(ints(zeros, 0, 4), (std::vector<int>{0x00, 0xF8, 0x80, 0x78}));
  p.weight[0] = inf;
  p.weight[1] = 1.0F;  // spoiled
  const auto infinite = cache_of(p);
  EXPECT_EQ(ints(infinite, 0, 4), (std::vector<int>{0x7E, 0x7E, 0x80, 0x00}));
  EXPECT_EQ(ints(infinite, 128, 4), (std::vector<int>{0x00, 0x00, 0x80, 0x7F}));
}

TEST(indexer_k_norm_rope_store, the_inverse_of_2_127_is_the_profiles) {
  problem p{.fp4 = true};
  p.weight[0] = inf;
  p.weight[2] = decode_bf16(0x7F7F);  // nearly 2 * 2^127
  const auto nvidia = cache_of(p);
  EXPECT_EQ(nvidia[64], 254);
  EXPECT_EQ(ints(nvidia, 0, 2), (std::vector<int>{0x77, 0x00}));  // inf * 0 is a NaN: code 7
  const auto ieee = cache_of(p, profile::ieee);
  EXPECT_EQ(ieee[64], 254);
  EXPECT_EQ(ints(ieee, 0, 2), (std::vector<int>{0x77, 0x04}));
}

TEST(indexer_k_norm_rope_store, nothing_to_store) {
  for (const bool fp4 : {false, true}) {
    const auto cache = cache_of({.positions = {0, 1, 2}, .slots = {-1, INT64_MIN}, .fp4 = fp4});
    EXPECT_EQ(cache, std::vector<std::uint8_t>(cache.size(), 0xCC));
  }
}

TEST(indexer_k_norm_rope_store, refusals) {
  const std::string kernel = "indexer_k_norm_rope_store: ";
  EXPECT_EQ(
      call_of({.fp4 = true, .shuffle = true, .block_size = 16}).refusal(),
      kernel + "shuffle: is 1, must be 0 where use_fp4_cache is 1: MXFP4 has no tiled layout");
  EXPECT_EQ(
      call_of({.shuffle = true, .block_size = 24}).refusal(),
      kernel + "k_cache: has 24 tokens a page, must have a multiple of 16 for tiles (shuffle)");
  EXPECT_EQ(call_of({.ratio = 4}).refusal(), kernel + "compress_ratio: is 4, must be 1 or 2");
  EXPECT_EQ(
      call_of({.slots = {0, -1}}).refusal(),
      kernel + "kv_slot_mapping: has 2 slots for the 1 rows of k_pre, must have at most as many");
  EXPECT_NE(call_of({.slots = {1}}).refusal(), "");
  EXPECT_EQ(call_of({.positions = {4}}).refusal(),
            kernel +
                "positions: position 4 of token 0 must be 0 or more and inside the 4 rows of "
                "cos_sin_cache");
  // A group's first position is read, and only where a key is stored.
  EXPECT_EQ(call_of({.positions = {4}, .ratio = 2}).refusal(), "");
  EXPECT_EQ(call_of({.positions = {4}, .slots = {-1}}).refusal(), "");
  EXPECT_NE(call_of({.positions = {5}, .ratio = 2}).refusal(), "");
  EXPECT_NE(call_of({.positions = {-1}, .ratio = 2}).refusal(), "");
  EXPECT_NE(call_of({.pages = 2, .gap = 2}).refusal(), "");
}

}  // namespace
}  // namespace kvcts
