#include "reference/numerics/arithmetic.h"

#include <gtest/gtest.h>

#include <limits>

namespace kvcts {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float odd_nan = float_of(0xFFC12345);

TEST(arithmetic, a_nan_that_is_made_is_canonical) {
  EXPECT_EQ(bits_of(add(infinity, -infinity)), canonical_nan_bits);
  EXPECT_EQ(bits_of(sub(infinity, infinity)), canonical_nan_bits);
  EXPECT_EQ(bits_of(mul(0.0f, infinity)), canonical_nan_bits);
  EXPECT_EQ(bits_of(fma(0.0f, infinity, 1.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(true_div(0.0f, 0.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(add(odd_nan, 1.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(mul(1.0f, odd_nan)), canonical_nan_bits);
  EXPECT_EQ(bits_of(fma(1.0f, 1.0f, odd_nan)), canonical_nan_bits);
  EXPECT_EQ(bits_of(max(odd_nan, odd_nan)), canonical_nan_bits);
  EXPECT_EQ(bits_of(min(odd_nan, odd_nan)), canonical_nan_bits);
}

TEST(arithmetic, max_and_min_prefer_numbers_and_order_zeros) {
  EXPECT_EQ(max(odd_nan, 2.0f), 2.0f);
  EXPECT_EQ(max(2.0f, odd_nan), 2.0f);
  EXPECT_EQ(min(odd_nan, -2.0f), -2.0f);
  EXPECT_EQ(min(-2.0f, odd_nan), -2.0f);
  EXPECT_EQ(bits_of(max(-0.0f, 0.0f)), bits_of(0.0f));
  EXPECT_EQ(bits_of(max(0.0f, -0.0f)), bits_of(0.0f));
  EXPECT_EQ(bits_of(min(-0.0f, 0.0f)), bits_of(-0.0f));
  EXPECT_EQ(bits_of(min(0.0f, -0.0f)), bits_of(-0.0f));
  EXPECT_EQ(max(1.0f, 2.0f), 2.0f);
  EXPECT_EQ(min(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(max(-infinity, -3.0f), -3.0f);
}

TEST(arithmetic, one_rounding_and_nothing_flushed) {
  EXPECT_EQ(bits_of(mul(0x1p-75f, 0x1p-74f)), 1u);             // the smallest subnormal
  EXPECT_EQ(bits_of(sub(0x1.8p-126f, 0x1p-126f)), 0x400000u);  // 2^-127
  EXPECT_EQ(add(0x1p24f, 1.0f), 0x1p24f);                      // a tie, to even
  EXPECT_EQ(add(0x1.000002p24f, 1.0f), 0x1.000004p24f);
  // 1 + 2^-12 squared less its rounded square is the bit that was rounded away.
  const float x = 0x1.001p0f;
  EXPECT_EQ(mul(x, x), 0x1.002p0f);
  EXPECT_EQ(fma(x, x, -mul(x, x)), 0x1p-24f);
  EXPECT_EQ(bits_of(true_div(1.0f, 6.0f)), 0x3E2AAAABu);
  EXPECT_EQ(bits_of(true_div(1.0f, 448.0f)), 0x3B124925u);
  EXPECT_EQ(bits_of(true_div(1.0f, 224.0f)), 0x3B924925u);
}

TEST(arithmetic, abs_keeps_a_payload_and_clamp_turns_nan_into_the_limit) {
  EXPECT_EQ(bits_of(abs(odd_nan)), 0x7FC12345u);
  EXPECT_EQ(bits_of(abs(-0.0f)), 0u);
  EXPECT_EQ(clamp_magnitude(odd_nan, 448.0f), 448.0f);
  EXPECT_EQ(clamp_magnitude(449.0f, 448.0f), 448.0f);
  EXPECT_EQ(clamp_magnitude(-infinity, 448.0f), -448.0f);
  EXPECT_EQ(clamp_magnitude(-3.5f, 448.0f), -3.5f);
  EXPECT_EQ(bits_of(clamp_magnitude(-0.0f, 448.0f)), bits_of(-0.0f));
}

}  // namespace
}  // namespace kvcts
