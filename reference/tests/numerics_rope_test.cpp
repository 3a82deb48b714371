// Rotations worked out by hand from docs/numerics.md, "RoPE".
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "reference/numerics/arithmetic.h"
#include "reference/numerics/rope.h"

namespace kvcts {
namespace {

using pair_of_dims = std::array<float, 2>;

pair_of_dims rotated(rope_form form, float even, float odd, float c, float s) {
  pair_of_dims x = {even, odd};
  const float row[2] = {c, s};
  rotate(rules_for(profile::nvidia), form, x.data(), 2, row, 2);
  return x;
}

pair_of_dims passed(rope_form form, float even, float odd) {
  pair_of_dims x = {even, odd};
  pass_through(rules_for(profile::nvidia), form, x.data(), 2, 0);
  return x;
}

// b * b = 1 + 2^-11 + 2^-24: the last bit is lost where the product is rounded.
constexpr float b = 0x1.001p0F;
constexpr float fused = 0x1.0008p-11F;  // 2^-11 + 2^-24
constexpr float rounded = 0x1p-11F;

TEST(rope, one_hot) {
  EXPECT_EQ(rotated(rope_form::store, 1, 0, 0.25F, 0.5F), (pair_of_dims{0.25F, 0.5F}));
  EXPECT_EQ(rotated(rope_form::store, 0, 1, 0.25F, 0.5F), (pair_of_dims{-0.5F, 0.25F}));
  EXPECT_EQ(rotated(rope_form::query, 1, 0, 0.25F, 0.5F), (pair_of_dims{0.25F, 0.5F}));
  EXPECT_EQ(rotated(rope_form::inverse, 1, 0, 0.25F, 0.5F), (pair_of_dims{0.25F, -0.5F}));
  EXPECT_EQ(rotated(rope_form::inverse, 0, 1, 0.25F, 0.5F), (pair_of_dims{0.5F, 0.25F}));
}

TEST(rope, contraction_of_the_even_dim) {
  for (const rope_form form : {rope_form::store, rope_form::query}) {
    EXPECT_EQ(rotated(form, b, 1, b, 1)[0], fused);
    EXPECT_EQ(rotated(form, -1, -b, 1, b)[0], rounded);
  }
  EXPECT_EQ(rotated(rope_form::inverse, b, -1, b, 1)[0], fused);
  EXPECT_EQ(rotated(rope_form::inverse, -1, b, 1, b)[0], rounded);
}

TEST(rope, contraction_of_the_odd_dim) {
  EXPECT_EQ(rotated(rope_form::store, -1, b, b, 1)[1], fused);
  EXPECT_EQ(rotated(rope_form::store, b, -1, 1, b)[1], rounded);
  EXPECT_EQ(rotated(rope_form::query, -1, b, b, 1)[1], rounded);
  EXPECT_EQ(rotated(rope_form::query, b, -1, 1, b)[1], fused);
  EXPECT_EQ(rotated(rope_form::inverse, 1, b, b, 1)[1], fused);
  EXPECT_EQ(rotated(rope_form::inverse, -b, -1, 1, b)[1], rounded);
}

TEST(rope, the_last_dims_rotate_by_neighbours) {
  std::array<float, 6> x = {1, 2, 3, 4, 5, 6};
  const float row[4] = {0, 1, 1, 0};  // cosines of both pairs, then sines
  rotate(rules_for(profile::nvidia), rope_form::store, x.data(), 6, row, 4);
  EXPECT_EQ(x, (std::array<float, 6>{1, 2, -4, 3, 5, 6}));
}

TEST(rope, pairs_that_do_not_rotate) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto bits = [](const pair_of_dims& x) {
    return std::array<std::uint32_t, 2>{bits_of(x[0]), bits_of(x[1])};
  };
  using two = std::array<std::uint32_t, 2>;
  EXPECT_EQ(bits(passed(rope_form::store, -0.0F, -1)), (two{0, 0xBF800000}));
  EXPECT_EQ(bits(passed(rope_form::store, -0.0F, 1)), (two{0x80000000, 0x3F800000}));
  EXPECT_EQ(bits(passed(rope_form::store, 1, -0.0F)), (two{0x3F800000, 0}));
  EXPECT_EQ(bits(passed(rope_form::store, -1, -0.0F)), (two{0xBF800000, 0x80000000}));
  EXPECT_EQ(bits(passed(rope_form::store, inf, 1)), (two{0x7F800000, canonical_nan_bits}));
  EXPECT_EQ(bits(passed(rope_form::store, 1, -inf)), (two{canonical_nan_bits, 0xFF800000}));
}

}  // namespace
}  // namespace kvcts
