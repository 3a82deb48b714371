// LayerNorm and RMSNorm of single rows, worked out by hand from docs/numerics.md.
#include "reference/kernels/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr profile profiles[] = {profile::nvidia, profile::ieee};
constexpr std::int64_t key_dims[] = {32, 64, 128, 256, 512, 1024};

layer_norm norm_of(std::int64_t dims, int warps, float eps, float weight = 1, float bias = 0) {
  return {std::vector<float>(static_cast<std::size_t>(dims), weight),
          std::vector<float>(static_cast<std::size_t>(dims), bias), eps, tree_of(dims, 2, warps)};
}

std::vector<float> alternating(std::int64_t dims, float value) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < dims; ++i) x.push_back(i % 2 == 0 ? value : -value);
  return x;
}

TEST(layer_norm, mean_zero_and_variance_one_leave_the_row) {
  for (const std::int64_t dims : key_dims) {
    for (const int warps : {1, 2, 4}) {
      for (const profile p : profiles) {
        const auto y = norm_of(dims, warps, 0, 3, 0.5F).of(alternating(dims, 1), rules_for(p));
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], i % 2 == 0 ? 3.5F : -2.5F);
      }
    }
  }
}

TEST(layer_norm, constant_row_gives_the_bias) {
  for (const std::int64_t dims : key_dims) {
    for (const float x : {0.0F, -0.0F, 1.5F, -96.0F}) {
      const std::vector<float> row(static_cast<std::size_t>(dims), x);
      for (const float y : norm_of(dims, 1, 1e-6F, 7, -0.25F).of(row, rules_for(profile::nvidia))) {
        ASSERT_EQ(y, -0.25F);
      }
    }
  }
}

TEST(layer_norm, zero_variance_without_eps_is_zero_times_infinity) {
  for (const profile p : profiles) {
    for (const float y : norm_of(64, 1, 0).of(std::vector<float>(64, 1), rules_for(p))) {
      ASSERT_EQ(bits_of(y), canonical_nan_bits);
    }
  }
}

TEST(layer_norm, a_nan_or_infinity_or_an_overflowing_sum_makes_every_value_nan) {
  for (const std::int64_t dims : key_dims) {
    for (const profile p : profiles) {
      for (const float bad : {nan, -nan, inf, -inf}) {
        std::vector<float> row = alternating(dims, 1);
        row[static_cast<std::size_t>(dims - 3)] = bad;
        for (const float y : norm_of(dims, 4, 1e-6F).of(row, rules_for(p))) {
          ASSERT_EQ(bits_of(y), canonical_nan_bits);
        }
      }
      const std::vector<float> large(static_cast<std::size_t>(dims), 0x1p127F);
      for (const float y : norm_of(dims, 1, 1e-6F).of(large, rules_for(p))) {
        ASSERT_EQ(bits_of(y), canonical_nan_bits);
      }
    }
  }
}

TEST(layer_norm, an_infinite_variance_of_finite_deviations_gives_the_bias) {
  for (const std::int64_t dims : key_dims) {
    for (const profile p : profiles) {
      for (const float y :
           norm_of(dims, 2, 1e-6F, 2, 0.75F).of(alternating(dims, 0x1p100F), rules_for(p))) {
        ASSERT_EQ(y, 0.75F);
      }
    }
  }
}

TEST(layer_norm, thirty_two_dims_keep_two_roots) {
  // Deviations are the row itself (its sum is 0). The lower lanes' sum of squares is one ulp above
  // the upper ones'. With eps = 0, v = S/32; rsqrt differs for S as below.
  std::vector<float> row(32, 0.0F);
  row[0] = 1 + 0x1p-12F;
  row[16] = 0x1p-15F;
  row[1] = -row[0];
  row[17] = -row[16];
  Rules rules = rules_for(profile::nvidia);
  rules.rsqrt = [](float v) { return v; };  // shows v itself
  const auto y = norm_of(32, 1, 0).of(row, rules);
  const float lower = tree_sum_of_squares(tree_of(32, 2, 1), row.data(), 32, 0) / 32;
  const float upper = tree_sum_of_squares(tree_of(32, 2, 1), row.data(), 32, 31) / 32;
  ASSERT_NE(lower, upper);
  EXPECT_EQ(y[0], row[0] * lower);
  EXPECT_EQ(y[1], row[1] * lower);
  EXPECT_EQ(y[16], row[16] * upper);
  EXPECT_EQ(y[17], row[17] * upper);
}

TEST(layer_norm, last_step_is_one_fma) {
  // d*r = 1 + 2^-12 (r = 1), w the same, b = -1: the fma keeps 2^-24, two roundings lose it.
  Rules rules = rules_for(profile::nvidia);
  rules.rsqrt = [](float) { return 1.0F; };
  const auto y = norm_of(32, 1, 0, 1 + 0x1p-12F, -1).of(alternating(32, 1 + 0x1p-12F), rules);
  EXPECT_EQ(y[0], 0x1p-11F + 0x1p-24F);
}

TEST(rms_norm, root_of_the_mean_square) {
  for (const std::int64_t n : {1, 2, 16, 64, 512, 2048}) {
    const rms_norm norm = {std::vector<float>(static_cast<std::size_t>(n), 3), 0, tree_of(n, 2, 4)};
    const std::vector<float> row(static_cast<std::size_t>(n), -2);
    for (const profile p : profiles) {
      for (const float y : norm.of(row, rules_for(p))) ASSERT_EQ(y, -3) << n;
    }
  }
}

TEST(rms_norm, last_step_rounds_twice) {
  Rules rules = rules_for(profile::nvidia);
  rules.rsqrt = [](float) { return 1 + 0x1p-12F; };
  const rms_norm norm = {std::vector<float>(64, 3), 0, tree_of(64, 2, 4)};
  // x*r = 1 + 2^-11 + 2^-24, a tie that goes to 1 + 2^-11; r*w first would give 3 + 3 * 2^-12, and
  // then 3 + 3 * 2^-11 + 2^-22.
  const auto y = norm.of(std::vector<float>(64, 1 + 0x1p-12F), rules);
  EXPECT_EQ(y[0], 3 + 3 * 0x1p-11F);
}

TEST(rms_norm, infinity_spoils_itself_and_zeroes_the_rest) {
  for (const profile p : profiles) {
    std::vector<float> row(512, -1);
    row[7] = inf;
    const rms_norm norm = {std::vector<float>(512, 1), 1e-6F, tree_of(512, 2, 4)};
    const auto y = norm.of(row, rules_for(p));
    EXPECT_EQ(bits_of(y[7]), canonical_nan_bits);
    EXPECT_EQ(bits_of(y[8]), 0x80000000);
    row[7] = nan;
    for (const float value : norm.of(row, rules_for(p))) {
      ASSERT_EQ(bits_of(value), canonical_nan_bits);
    }
  }
}

TEST(rms_norm, variance_of_an_inexact_width_is_one_rounding_in_nvidia_only) {
  const rms_norm norm = {std::vector<float>(1536, 1), 0, tree_of(2048, 2, 4)};
  int different = 0;
  for (int i = 1; i < 200; ++i) {
    std::vector<float> row(1536, 0.0F);
    for (int j = 0; j < i; ++j) row[static_cast<std::size_t>(j)] = 1;
    Rules nvidia = rules_for(profile::nvidia);
    Rules ieee = rules_for(profile::ieee);
    nvidia.rsqrt = ieee.rsqrt = [](float v) { return v; };
    const float by_fma = std::fma(static_cast<float>(i), 1.0F / 1536.0F, 0.0F);
    const float by_division = static_cast<float>(i) / 1536.0F;
    ASSERT_EQ(norm.of(row, nvidia)[0], by_fma);
    ASSERT_EQ(norm.of(row, ieee)[0], by_division);
    different += by_fma != by_division ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace kvcts
