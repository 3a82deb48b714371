// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/numerics/arithmetic.h"
#include "reference/tests/head_rows.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct problem {
  std::vector<float> x = {};  // one head; padded with zeros
  std::int64_t position = 0;
  bool fp4 = false;
  float weight = 1.0F, softmax = 1.0F, head = 1.0F;
  std::string weights_out = "f32";
  std::string format = "e4m3fn";
  std::int64_t dims = 32;
};

// One token, one head of 32 dims, of which the last two rotate.
call_builder call_of(const problem& p) {
  call_builder b("fused_indexer_q_rope_quant");
  b.i64("positions", {p.position});
  b.add("index_q", dtype::bf16, {1, 1, p.dims}, bf16_bits(p.x, static_cast<std::size_t>(p.dims)));
  add_turns(b, "index_q_cos_sin_cache", 2, 2);
  b.add("index_weights", dtype::f32, {1, 1}, std::vector<float>{p.weight});
  auto& attributes = b.get().attributes;
  attributes["index_weights_softmax_scale"] = static_cast<double>(p.softmax);
  attributes["index_weights_head_scale"] = static_cast<double>(p.head);
  attributes["use_fp4"] = std::int64_t{p.fp4 ? 1 : 0};
  attributes["weights_out_dtype"] = p.weights_out;
  attributes["fp8_format"] = p.format;
  return b;
}

call_builder run(const problem& p, profile with = profile::nvidia) {
  call_builder b = call_of(p);
  b.run(rules_for(with));
  return b;
}

// Values at the head's end, which rotate.
std::vector<float> tail(float even, float odd) {
  std::vector<float> x(32, 0.0F);
  x[30] = even;
  x[31] = odd;
  return x;
}

float weight_of(const call_builder& b) { return b.elements<float>("weights_out")[0]; }

TEST(fused_indexer_q_rope_quant, fp8_scale_and_weight) {
  // amax 448: scale 1. 450: scale 2, 225 -> 224.
  const call_builder one =
      run({.x = {448.0F, 1.0F}, .weight = 2.0F, .softmax = 0.5F, .head = 0.25F});
  EXPECT_EQ(ints(one.bytes("q_quant"), 0, 3), (std::vector<int>{0x7E, 0x38, 0x00}));
  EXPECT_EQ(weight_of(one), 0.25F);
  const call_builder two =
      run({.x = {450.0F, -448.0F}, .weight = 2.0F, .softmax = 0.5F, .head = 0.25F});
  EXPECT_EQ(ints(two.bytes("q_quant"), 0, 3), (std::vector<int>{0x76, 0xF6, 0x00}));
  EXPECT_EQ(weight_of(two), 0.5F);
}

TEST(fused_indexer_q_rope_quant, rotation_of_the_last_dims) {
  const call_builder kept = run({.x = tail(448.0F, 1.0F), .position = 0});
  EXPECT_EQ(ints(kept.bytes("q_quant"), 30, 2), (std::vector<int>{0x7E, 0x38}));
  const call_builder turned = run({.x = tail(448.0F, 1.0F), .position = 1});
  EXPECT_EQ(ints(turned.bytes("q_quant"), 30, 2), (std::vector<int>{0xB8, 0x7E}));
}

TEST(fused_indexer_q_rope_quant, rotated_pairs_go_through_bf16) {
  // 256 * 1.75 * (1 + 2^-10) = 448.4375 needs the scale 2; its bf16, 448, does not.
  call_builder b = call_of({.x = tail(256.0F, 0.0F)});
  b.add("index_q_cos_sin_cache", dtype::f32, {1, 2}, std::vector<float>{0x1.c07p0F, 0.0F});
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(ints(b.bytes("q_quant"), 30, 2), (std::vector<int>{0x7E, 0x00}));
  EXPECT_EQ(weight_of(b), 1.0F);
}

TEST(fused_indexer_q_rope_quant, dims_before_pass_as_they_are) {
  // -0 stays, although its neighbour is negative; an infinity does not spoil its neighbour.
  const call_builder zeros = run({.x = {-0.0F, -448.0F}});
  EXPECT_EQ(ints(zeros.bytes("q_quant"), 0, 2), (std::vector<int>{0x80, 0xFE}));
  const call_builder infinite = run({.x = {inf, 1.0F, -1.0F, -inf}});
  EXPECT_EQ(ints(infinite.bytes("q_quant"), 0, 4), (std::vector<int>{0x7F, 0x00, 0x80, 0x7F}));
  EXPECT_EQ(weight_of(infinite), inf);
}

TEST(fused_indexer_q_rope_quant, zero_and_nan) {
  // 1e-4 / 448: 2^-22.
  const call_builder zero = run({.x = {}});
  EXPECT_EQ(ints(zero.bytes("q_quant"), 0, 32), std::vector<int>(32, 0));
  EXPECT_EQ(weight_of(zero), 0x1p-22F);
  const call_builder one = run({.x = {nan, 448.0F}});
  EXPECT_EQ(ints(one.bytes("q_quant"), 0, 2), (std::vector<int>{0x7F, 0x7E}));
  EXPECT_EQ(weight_of(one), 1.0F);
  const call_builder all = run({.x = std::vector<float>(32, nan)});
  EXPECT_EQ(ints(all.bytes("q_quant"), 0, 32), std::vector<int>(32, 0x7F));
  EXPECT_EQ(weight_of(all), 0x1p-22F);
}

TEST(fused_indexer_q_rope_quant, the_scale_is_folded_first) {
  // 2^127 * 2 overflows before softmax brings it back.
  EXPECT_EQ(weight_of(run({.x = {450.0F}, .weight = 0x1p127F, .softmax = 0x1p-10F})), inf);
  EXPECT_EQ(weight_of(run({.x = {448.0F}, .weight = 0x1p127F, .softmax = 0x1p-10F})), 0x1p117F);
  // MXFP4: no scale, softmax before head.
  const problem huge = {
      .x = {448.0F}, .fp4 = true, .weight = 0x1p127F, .softmax = 2.0F, .head = 0x1p-10F};
  EXPECT_EQ(weight_of(run(huge)), inf);
}

TEST(fused_indexer_q_rope_quant, fnuz) {
  // Limit 224, no clamp: the encoder's own end is 240.
  call_builder one = run({.x = {1.0F, -0.0F, -1.0F, nan}, .format = "e4m3fnuz"});
  EXPECT_EQ(ints(one.bytes("q_quant"), 0, 4), (std::vector<int>{0x78, 0x00, 0xF8, 0x80}));
  EXPECT_EQ(weight_of(one), 0x1p-7F);
  EXPECT_EQ(one.get().tensor("q_quant").type, dtype::f8e4m3fnuz);
  const call_builder limit = run({.x = {224.0F, 130.0F}, .format = "e4m3fnuz"});
  EXPECT_EQ(ints(limit.bytes("q_quant"), 0, 2), (std::vector<int>{0x7E, 0x78}));
  EXPECT_EQ(weight_of(limit), 1.0F);
}

TEST(fused_indexer_q_rope_quant, mxfp4) {
  const call_builder six = run({.x = {6.0F, -1.0F, 0.25F, 0.75F}, .fp4 = true});
  EXPECT_EQ(ints(six.bytes("q_packed"), 0, 2), (std::vector<int>{0xA7, 0x20}));
  EXPECT_EQ(ints(six.bytes("q_scale"), 0, 1), (std::vector<int>{127}));
  const call_builder above = run({.x = {6.03125F}, .fp4 = true});
  EXPECT_EQ(ints(above.bytes("q_scale"), 0, 1), (std::vector<int>{128}));
  EXPECT_EQ(ints(above.bytes("q_packed"), 0, 1), (std::vector<int>{0x05}));
  const call_builder zero = run({.x = {0.0F, -0.0F}, .fp4 = true});
  EXPECT_EQ(ints(zero.bytes("q_scale"), 0, 1), (std::vector<int>{1}));
  EXPECT_EQ(ints(zero.bytes("q_packed"), 0, 1), (std::vector<int>{0x80}));
  // 2^-127 is kept as the inverse of an infinite block: 1.5 * 2^127 gives 1.5.
  for (const profile p : {profile::nvidia, profile::ieee}) {
    const call_builder infinite = run({.x = {inf, 0x1.8p127F, nan}, .fp4 = true}, p);
    EXPECT_EQ(ints(infinite.bytes("q_scale"), 0, 1), (std::vector<int>{254}));
    EXPECT_EQ(ints(infinite.bytes("q_packed"), 0, 2), (std::vector<int>{0x37, 0x07}));
  }
}

TEST(fused_indexer_q_rope_quant, bf16_weights_are_rounded_last) {
  const problem p = {.fp4 = true, .weight = 0x1.01p0F, .softmax = 1.5F, .weights_out = "bf16"};
  EXPECT_EQ(run(p).elements<std::uint16_t>("weights_out")[0], 0x3FC1);  // rounded first: 0x3FC0
}

TEST(fused_indexer_q_rope_quant, strided_queries_and_bf16_tables) {
  call_builder b = call_of({});
  b.i64("positions", {1, 0, 1});
  tensor_view& q = b.add("index_q", dtype::bf16, {{3, 2, 33}, {80, 37, 1}, 5});
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t d = 0; d < 33; ++d) {
        const float x = d == 32 ? 448.0F : static_cast<float>(t + 4 * h);
        store(q.element(t, h, d), encode_bf16(x));
      }
    }
  }
  b.add("index_q_cos_sin_cache", dtype::bf16, {2, 2}, bf16_bits({1, 0, 0, 1}));
  b.add("index_weights", dtype::bf16, {3, 2}, bf16_bits({1, 2, 3, 4, 5, 6}));
  b.run(rules_for(profile::nvidia));
  const auto codes = b.bytes("q_quant");
  const int small[] = {0x00, 0x38, 0x40, 0, 0x48, 0x4A, 0x4C};
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t h = 0; h < 2; ++h) {
      const int code = small[t + 4 * h];
      const std::size_t head = (2 * t + h) * 33;
      EXPECT_EQ(ints(codes, head, 31), std::vector<int>(31, code));
      // Position 1: (-448, x).
      const std::vector<int> turned = {0xFE, code};
      EXPECT_EQ(ints(codes, head + 31, 2), t == 1 ? (std::vector<int>{code, 0x7E}) : turned);
    }
  }
  EXPECT_EQ(b.elements<float>("weights_out"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ints(codes, 198, 16), std::vector<int>(16, 0xCC));
}

TEST(fused_indexer_q_rope_quant, no_tokens) {
  call_builder b = call_of({});
  b.i64("positions", {});
  b.add("index_q", dtype::bf16, {0, 5, 32});
  b.add("index_weights", dtype::f32, {0, 5});
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(ints(b.bytes("q_quant"), 0, 16), std::vector<int>(16, 0xCC));
}

TEST(fused_indexer_q_rope_quant, refusals) {
  const std::string kernel = "fused_indexer_q_rope_quant: ";
  EXPECT_EQ(call_of({.weights_out = "bf16"}).refusal(),
            kernel + "weights_out_dtype: is 'bf16', must be 'f32' unless use_fp4 is 1");
  EXPECT_EQ(call_of({.fp4 = true, .dims = 40}).refusal(),
            kernel + "index_q: has a head dim of 40, must be a multiple of 32 with MXFP4");
  EXPECT_EQ(
      call_of({.dims = 1}).refusal(),
      kernel + "index_q_cos_sin_cache: has rows of 2, must be even and at most the head dim 1");
  EXPECT_EQ(call_of({.position = 2}).refusal(),
            kernel +
                "positions: position 2 of token 0 must be 0 or more and inside the 2 rows of "
                "index_q_cos_sin_cache");
  EXPECT_NE(call_of({.position = -1}).refusal(), "");
  EXPECT_NE(call_of({.format = "e5m2"}).refusal(), "");
  call_builder wrong = call_of({});
  wrong.add("q_quant", dtype::f8e4m3fnuz, {1, 1, 32});
  wrong.add("weights_out", dtype::f32, {1, 1});
  EXPECT_EQ(wrong.refusal(true), kernel + "q_quant: dtype is f8e4m3fnuz, must be f8e4m3fn");
}

}  // namespace
}  // namespace kvcts
