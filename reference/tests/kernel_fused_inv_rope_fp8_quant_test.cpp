// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/tests/head_rows.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct problem {
  std::vector<std::vector<float>> tokens = {};  // every head's dims, one after the other
  std::vector<std::int64_t> positions = {};
  std::int64_t groups = 1, heads = 1, nope = 2, rope = 2, group_size = 4;
  bool packed = false, quantize = true;
};

call_builder call_of(const problem& p) {
  call_builder b("fused_inv_rope_fp8_quant");
  const auto tokens = static_cast<std::int64_t>(p.tokens.size());
  std::vector<float> values;
  for (const auto& token : p.tokens) values.insert(values.end(), token.begin(), token.end());
  b.add("o", dtype::bf16, {tokens, p.groups * p.heads, p.nope + p.rope}, bf16_bits(values));
  b.i64("positions", p.positions);
  add_turns(b, "cos_sin_cache", 2, p.rope);
  auto& attributes = b.get().attributes;
  attributes["n_groups"] = p.groups;
  attributes["heads_per_group"] = p.heads;
  attributes["nope_dim"] = p.nope;
  attributes["rope_dim"] = p.rope;
  attributes["quant_group_size"] = p.group_size;
  attributes["tma_aligned_scales"] = std::int64_t{p.packed ? 1 : 0};
  attributes["quantize"] = std::int64_t{p.quantize ? 1 : 0};
  return b;
}

call_builder run(const problem& p) {
  call_builder b = call_of(p);
  b.run(rules_for(profile::nvidia));
  return b;
}

// The one scale of a call with one token and one group of dims.
float scale_of(const call_builder& b) { return b.elements<float>("scales")[0]; }

TEST(fused_inv_rope_fp8_quant, inverse_rotation) {
  const call_builder kept = run({.tokens = {{448, 1, 2, 3}}, .positions = {0}});
  EXPECT_EQ(ints(kept.bytes("output"), 0, 4), (std::vector<int>{0x7E, 0x38, 0x40, 0x44}));
  const call_builder turned = run({.tokens = {{448, 1, 2, 3}}, .positions = {1}});
  EXPECT_EQ(ints(turned.bytes("output"), 0, 4), (std::vector<int>{0x7E, 0x38, 0x44, 0xC0}));
  EXPECT_EQ(turned.elements<float>("scales"), (std::vector<float>{1, 0, 0, 0}));
}

TEST(fused_inv_rope_fp8_quant, layout_of_groups_and_scales) {
  // Two groups of two heads, five tokens, one scale a head: head h of token t has amax
  // 448*2^(t+5h).
  problem p{.groups = 2, .heads = 2};
  for (int t = 0; t < 5; ++t) {
    std::vector<float> token;
    for (int h = 0; h < 4; ++h) {
      const auto x = static_cast<float>(448ULL << (t + 5 * h));
      token.insert(token.end(), {x, 0, 0, x / 448});
    }
    p.tokens.push_back(token);
    p.positions.push_back(0);
  }
  const call_builder b = run(p);
  const auto output = b.bytes("output");
  const auto scales = b.elements<float>("scales");
  ASSERT_EQ(scales.size(), 2U * 2 * 8);
  for (std::size_t t = 0; t < 8; ++t) {
    for (std::size_t h = 0; h < 4; ++h) {
      const std::size_t g = h / 2;
      const std::size_t in_group = h % 2;
      const float scale = t < 5 ? static_cast<float>(1ULL << (t + 5 * h)) : 0.0F;
      EXPECT_EQ(scales[(g * 2 + in_group) * 8 + t], scale) << t << " " << h;
      if (t >= 5) continue;
      EXPECT_EQ(ints(output, ((g * 5 + t) * 2 + in_group) * 4, 4),
                (std::vector<int>{0x7E, 0, 0, 0x38}));
    }
  }
}

TEST(fused_inv_rope_fp8_quant, packed_scales) {
  // Four scales of one dim each: 448 -> 2^0, 1 -> 2^-8, 3 -> 2^-7, 2 -> 2^-7.
  const call_builder b =
      run({.tokens = {{448, 1, 2, 3}}, .positions = {1}, .group_size = 1, .packed = true});
  EXPECT_EQ(ints(b.bytes("output"), 0, 4), (std::vector<int>{0x7E, 0x78, 0x7C, 0xF8}));
  EXPECT_EQ(b.elements<std::int32_t>("scales"), (std::vector<std::int32_t>{0x7878777F, 0, 0, 0}));
}

TEST(fused_inv_rope_fp8_quant, no_rounding_before_the_quantization) {
  // 256 * 1.75 * (1 + 2^-10) = 448.4375: the scale is 2, 224.2 -> 224.
  call_builder b = call_of({.tokens = {{0, 0, 256, 0}}, .positions = {0}});
  b.add("cos_sin_cache", dtype::f32, {1, 2}, std::vector<float>{0x1.c07p0F, 0.0F});
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(ints(b.bytes("output"), 0, 4), (std::vector<int>{0, 0, 0x76, 0x00}));
  EXPECT_EQ(scale_of(b), 2.0F);
}

TEST(fused_inv_rope_fp8_quant, zero_nan_and_infinity) {
  // 1e-10 / 448: 2^-42.
  const call_builder zero = run({.tokens = {{0, -0.0F, 0, 0}}, .positions = {0}});
  EXPECT_EQ(ints(zero.bytes("output"), 0, 2), (std::vector<int>{0x00, 0x80}));
  EXPECT_EQ(scale_of(zero), 0x1p-42F);
  const call_builder one = run({.tokens = {{nan, 448, -0.0F, -1}}, .positions = {0}});
  EXPECT_EQ(ints(one.bytes("output"), 0, 2), (std::vector<int>{0x7E, 0x7E}));
  EXPECT_EQ(scale_of(one), 1.0F);
  const problem infinite = {.tokens = {{inf, 1, -1, -inf}}, .positions = {0}, .nope = 4, .rope = 0};
  const call_builder b = run(infinite);
  EXPECT_EQ(ints(b.bytes("output"), 0, 4), (std::vector<int>{0x7E, 0x00, 0x80, 0x7E}));
  EXPECT_EQ(scale_of(b), inf);
  problem packed = infinite;
  packed.group_size = 1;
  packed.packed = true;
  EXPECT_EQ(run(packed).elements<std::int32_t>("scales")[0], static_cast<std::int32_t>(0xFF7777FF));
}

TEST(fused_inv_rope_fp8_quant, unquantized) {
  // tma_aligned_scales says nothing here, although one scale a head cannot be packed.
  call_builder b =
      run({.tokens = {{448, nan, 2, 3}}, .positions = {1}, .packed = true, .quantize = false});
  EXPECT_EQ(b.get().tensor("output").type, dtype::bf16);
  EXPECT_EQ(b.elements<std::uint16_t>("output"),
            (std::vector<std::uint16_t>{0x43E0, 0x7FFF, 0x4040, 0xC000}));
  EXPECT_EQ(b.get().find("scales"), nullptr);
}

TEST(fused_inv_rope_fp8_quant, no_tokens) {
  call_builder b = run({.tokens = {}, .positions = {}});
  EXPECT_EQ(ints(b.bytes("scales"), 0, 16), std::vector<int>(16, 0xCC));
}

TEST(fused_inv_rope_fp8_quant, refusals) {
  const std::string kernel = "fused_inv_rope_fp8_quant: ";
  const problem good = {.tokens = {{1, 2, 3, 4}}, .positions = {0}};
  EXPECT_EQ(call_of(good).refusal(), "");
  problem p = good;
  p.packed = true;
  EXPECT_EQ(call_of(p).refusal(),
            kernel +
                "tma_aligned_scales: packs four scales of a head: (nope_dim + rope_dim) / "
                "quant_group_size must be a multiple of 4");
  p = good;
  p.group_size = 3;
  EXPECT_EQ(call_of(p).refusal(), kernel +
                                      "quant_group_size: is 3, must divide the head dim "
                                      "nope_dim + rope_dim");
  p.group_size = 0;
  EXPECT_EQ(call_of(p).refusal(), kernel + "quant_group_size: is 0, must be at least 1");
  p = good;
  p.positions = {7};
  EXPECT_EQ(call_of(p).refusal(), kernel +
                                      "positions: position 7 of token 0 must be 0 or more and "
                                      "inside the 2 rows of cos_sin_cache");
  call_builder b = call_of(good);
  b.get().attributes["n_groups"] = std::int64_t{2};
  EXPECT_EQ(b.refusal(), kernel + "o: has 1 heads, must have n_groups * heads_per_group = 2 * 1");
  b = call_of(good);
  b.get().attributes["nope_dim"] = std::int64_t{6};
  EXPECT_EQ(b.refusal(), kernel + "o: has a head dim of 4, must be nope_dim + rope_dim = 6 + 2");
  b = call_of(good);
  b.get().attributes["rope_dim"] = std::int64_t{3};
  EXPECT_EQ(b.refusal(), kernel + "rope_dim: is 3, must be even and not negative");
  b = call_of(good);
  b.add("cos_sin_cache", dtype::bf16, {2, 2});
  EXPECT_EQ(b.refusal(), kernel + "cos_sin_cache: dtype is bf16, must be f32");
}

}  // namespace
}  // namespace kvcts
