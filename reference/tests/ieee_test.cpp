#include "reference/numerics/ieee.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
// 128-bit products: g++ and clang have the type wherever the suite runs.
__extension__ using wide_integer = unsigned __int128;

// With x = X * 2^-23 in [1, 4) and the result R * 2^-24, R is the nearest exactly where
// (2R - 1)^2 X < 2^73 < (2R + 1)^2 X.
TEST(rsqrt_rn, is_correctly_rounded_on_both_octaves) {
  const wide_integer limit = wide_integer{1} << 73;
  for (std::uint32_t i = 0; i < 1u << 24; ++i) {
    const float x = float_of(0x3F800000 + i);
    const float r = rsqrt_rn(x);
    const auto scaled_x = static_cast<std::uint64_t>(x * 0x1p23f);
    const auto scaled_r = static_cast<std::uint64_t>(r * 0x1p24f);
    const wide_integer below = 2 * scaled_r - 1;
    const wide_integer above = 2 * scaled_r + 1;
    ASSERT_TRUE(below * below * scaled_x < limit && limit < above * above * scaled_x) << x;
  }
}

TEST(rsqrt_rn, scales_and_specials) {
  for (int k = -63; k <= 63; ++k) {
    for (const float x : {1.0f, 1.5f, 0x1.FFFFFEp0f, 2.0f, 3.0f}) {
      EXPECT_EQ(rsqrt_rn(std::ldexp(x, 2 * k)), std::ldexp(rsqrt_rn(x), -k));
    }
  }
  EXPECT_EQ(rsqrt_rn(0x1p-148f), 0x1p74f);  // a subnormal
  EXPECT_EQ(rsqrt_rn(0.0f), infinity);
  EXPECT_EQ(rsqrt_rn(-0.0f), -infinity);
  EXPECT_EQ(bits_of(rsqrt_rn(infinity)), 0u);
  EXPECT_EQ(bits_of(rsqrt_rn(-1.0f)), canonical_nan_bits);
  EXPECT_EQ(bits_of(rsqrt_rn(-infinity)), canonical_nan_bits);
  EXPECT_EQ(bits_of(rsqrt_rn(float_of(0xFFC00000))), canonical_nan_bits);
}

// Against the wide exponential where it settles the rounding by itself.
TEST(exp_rn, is_the_rounded_exponential) {
  if (std::numeric_limits<long double>::digits < 64) {
    GTEST_SKIP() << "long double is no wider than double here";
  }
  std::uint64_t settled = 0;
  std::uint64_t open = 0;
  const auto check = [&](float x) {
    const long double wide = std::exp(static_cast<long double>(x));
    const auto below = static_cast<float>(wide * (1 - 0x1p-61L));
    const auto above = static_cast<float>(wide * (1 + 0x1p-61L));
    if (below != above) {
      ++open;
      return;
    }
    ++settled;
    ASSERT_EQ(bits_of(exp_rn(x)), bits_of(below)) << x;
  };
  for (std::uint32_t bits = 0; bits < 0x42D20000; bits += 677) {
    check(float_of(bits));
    check(-float_of(bits));
  }
  // One part in some thousand of these lies near a tie for a double: e^x is just beside 1 + k ulp.
  for (std::uint32_t bits = 0x33000000; bits < 0x33000000 + 200000; ++bits) {
    check(float_of(bits));
    check(-float_of(bits));
  }
  EXPECT_GT(settled, 3000000u);
  EXPECT_LT(open, settled / 100);
}

// The inputs, of all f32, whose exponential lies nearest to a tie: 2^-52.6 to 2^-50 of it away.
TEST(exp_rn, the_hardest_inputs) {
  struct hard {
    std::uint32_t x;
    std::uint32_t expected;
  };
  const hard inputs[] = {
      {0xC16912CD, 0x34FD331B}, {0xBBF0EDF1, 0x3F7E1FE9}, {0xBAE0E25C, 0x3F7F8FA7},
      {0xB3000000, 0x3F800000}, {0x377EFF81, 0x3F800080}, {0x40315B33, 0x417FA47D},
      {0x4001B249, 0x40F2CD14}, {0x39C6BE5B, 0x3F800C6D}, {0x38E69CC1, 0x3F80039A},
      {0x383A3EF1, 0x3F800175}, {0xBC2A461A, 0x3F7D5A6E}, {0x4288942B, 0x70B7A4C5}};
  for (const hard& h : inputs) {
    EXPECT_EQ(bits_of(exp_rn(float_of(h.x))), h.expected) << std::hex << h.x;
  }
}

TEST(exp_rn, just_beside_ties_and_at_the_ends) {
  EXPECT_EQ(bits_of(exp_rn(0x1p-24f)), 0x3F800001u);    // 1 + 2^-24 + 2^-49: above the tie
  EXPECT_EQ(bits_of(exp_rn(-0x1p-25f)), 0x3F800000u);   // 1 - 2^-25 + 2^-51: above the tie
  EXPECT_EQ(bits_of(exp_rn(0x1.8p-23f)), 0x3F800002u);  // 1 + 3 * 2^-24 + ...: above the tie
  EXPECT_EQ(exp_rn(0x1p-149f), 1.0f);
  EXPECT_EQ(exp_rn(0.0f), 1.0f);
  EXPECT_EQ(exp_rn(-0.0f), 1.0f);
  EXPECT_EQ(exp_rn(infinity), infinity);
  EXPECT_EQ(bits_of(exp_rn(-infinity)), 0u);
  EXPECT_EQ(bits_of(exp_rn(float_of(0xFFC00001))), canonical_nan_bits);
  EXPECT_EQ(bits_of(exp_rn(float_of(0x42B17217))), 0x7F7FFF84u);  // the last finite one
  EXPECT_EQ(exp_rn(float_of(0x42B17218)), infinity);
  EXPECT_EQ(bits_of(exp_rn(float_of(0xC2CFF1B4))), 1u);  // the last above 2^-150
  EXPECT_EQ(bits_of(exp_rn(float_of(0xC2CFF1B5))), 0u);
}

}  // namespace
}  // namespace kvcts
