#include "reference/numerics/log2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// ceil of the f32 nearest to log2(x). The wide logarithm has many more bits than the distance of
// any of these inputs from a tie.
float ceil_of_rounded(float x) {
  return std::ceil(static_cast<float>(std::log2(static_cast<long double>(x))));
}

float just_above(int e, std::uint32_t units) {
  return float_of((static_cast<std::uint32_t>(e + 127) << 23) + units);
}

TEST(ceil_log2, equals_the_rounded_logarithm_around_every_power_of_two) {
  for (int e = -126; e <= 127; ++e) {
    for (std::uint32_t units = 0; units <= 128; ++units) {
      const float x = just_above(e, units);
      ASSERT_EQ(ceil_log2(x), ceil_of_rounded(x)) << "2^" << e << " plus " << units << " units";
    }
    for (std::uint32_t units = 1; units <= 128 && e > -126; ++units) {
      const float x = float_of((static_cast<std::uint32_t>(e + 127) << 23) - units);
      ASSERT_EQ(ceil_log2(x), ceil_of_rounded(x)) << "2^" << e << " less " << units << " units";
    }
    for (std::uint32_t units = 0; units < 0x800000; units += 0x1357) {
      const float x = just_above(e, units);
      ASSERT_EQ(ceil_log2(x), ceil_of_rounded(x)) << "2^" << e << " plus " << units << " units";
    }
  }
}

// The intervals in which the rounded logarithm is the power itself, as docs/numerics.md lists them.
TEST(ceil_log2, has_the_listed_interval_above_each_power_of_two) {
  struct interval {
    int first;
    int last;
    std::uint32_t units;
  };
  const interval intervals[] = {{-126, -65, 22}, {64, 127, 22}, {-64, -33, 11}, {32, 63, 11},
                                {-32, -17, 5},   {16, 31, 5},   {-16, -9, 2},   {8, 15, 2},
                                {-8, -5, 1},     {4, 7, 1},     {-4, 3, 0}};
  int powers = 0;
  for (const interval& i : intervals) {
    for (int e = i.first; e <= i.last; ++e, ++powers) {
      const auto power = static_cast<float>(e);
      EXPECT_EQ(ceil_log2(just_above(e, 0)), power);
      EXPECT_EQ(ceil_log2(just_above(e, i.units)), power) << e;
      EXPECT_EQ(ceil_log2(just_above(e, i.units + 1)), power + 1) << e;
      EXPECT_EQ(ceil_log2_exact(just_above(e, 0)), power);
      EXPECT_EQ(ceil_log2_exact(just_above(e, 1)), power + 1);
    }
  }
  EXPECT_EQ(powers, 254);
}

TEST(ceil_log2, subnormals_and_specials) {
  for (std::uint32_t bits = 1; bits < 0x800000; bits = bits < 4096 ? bits + 1 : bits + 97) {
    ASSERT_EQ(ceil_log2(float_of(bits)), ceil_of_rounded(float_of(bits))) << bits;
  }
  for (int bit = 6; bit < 23; ++bit) {
    for (std::uint32_t units = 0; units <= 60; ++units) {
      const float x = float_of((1u << bit) + units);
      ASSERT_EQ(ceil_log2(x), ceil_of_rounded(x)) << bit << " + " << units;
    }
  }
  EXPECT_EQ(ceil_log2(infinity), infinity);
  EXPECT_EQ(ceil_log2(0.0f), -infinity);
  EXPECT_TRUE(std::isnan(ceil_log2(-1.0f)));
  EXPECT_EQ(ceil_log2_exact(infinity), infinity);
  EXPECT_EQ(ceil_log2_exact(0x1p-149f), -149.0f);
}

}  // namespace
}  // namespace kvcts
