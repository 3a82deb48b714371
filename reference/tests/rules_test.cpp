#include "reference/numerics/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "reference/formats/bf16.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const Rules nvidia = rules_for(profile::nvidia);
const Rules ieee = rules_for(profile::ieee);

// A rule that is not set would be a null pointer, and so an aligned word of zeros. Every other word
// of Rules holds something that is not zero.
TEST(rules, no_rule_is_missing) {
  for (const Rules* rules : {&nvidia, &ieee}) {
    for (std::size_t at = 0; at + sizeof(void*) <= sizeof(Rules); at += sizeof(void*)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, reinterpret_cast<const char*>(rules) + at, sizeof word);
      EXPECT_NE(word, 0u) << rules->name << ", byte " << at << " of Rules";
    }
  }
}

TEST(rules, profiles_carry_their_names) {
  EXPECT_EQ(nvidia.name, "nvidia");
  EXPECT_EQ(ieee.name, "ieee");
  EXPECT_EQ(name_of(profile::ieee), "ieee");
}

TEST(rules, powers_of_two_as_factors) {
  for (int n = -126; n <= 127; ++n) {
    EXPECT_EQ(nvidia.exp2_int(static_cast<float>(n)), std::ldexp(1.0f, n));
    EXPECT_EQ(ieee.exp2_int(static_cast<float>(n)), std::ldexp(1.0f, n));
  }
  for (int n = -149; n <= -127; ++n) {
    EXPECT_EQ(bits_of(nvidia.exp2_int(static_cast<float>(n))), 0u);
    EXPECT_EQ(ieee.exp2_int(static_cast<float>(n)), std::ldexp(1.0f, n));
  }
  for (const Rules* rules : {&nvidia, &ieee}) {
    EXPECT_EQ(bits_of(rules->exp2_int(-150.0f)), 0u);
    EXPECT_EQ(bits_of(rules->exp2_int(-infinity)), 0u);
    EXPECT_EQ(rules->exp2_int(128.0f), infinity);
    EXPECT_EQ(rules->exp2_int(infinity), infinity);
  }
}

TEST(rules, scale_bytes_as_factors) {
  for (int byte = 1; byte < 255; ++byte) {
    const auto code = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(nvidia.scale_of_byte(code), std::ldexp(1.0f, byte - 127));
    EXPECT_EQ(ieee.scale_of_byte(code), std::ldexp(1.0f, byte - 127));
  }
  EXPECT_EQ(bits_of(nvidia.scale_of_byte(0)), 0u);
  EXPECT_EQ(nvidia.scale_of_byte(255), infinity);
  EXPECT_EQ(ieee.scale_of_byte(0), 0x1p-127f);
  EXPECT_EQ(bits_of(ieee.scale_of_byte(255)), canonical_nan_bits);
}

TEST(rules, division_and_roots_differ_where_the_profiles_do) {
  int divisions = 0;
  int roots = 0;
  int exponentials = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const float x = float_of(0x3F800000 + i * 1601);
    divisions += bits_of(nvidia.div(x, 6.0f)) != bits_of(ieee.div(x, 6.0f));
    roots += bits_of(nvidia.rsqrt(x)) != bits_of(ieee.rsqrt(x));
    exponentials += bits_of(nvidia.exp(x)) != bits_of(ieee.exp(x));
    EXPECT_EQ(bits_of(ieee.div(x, 6.0f)), bits_of(x / 6.0f));
    EXPECT_EQ(bits_of(nvidia.true_div(x, 6.0f)), bits_of(x / 6.0f));
  }
  EXPECT_GT(divisions, 3000);
  EXPECT_GT(roots, 2000);
  EXPECT_GT(exponentials, 2000);
  EXPECT_EQ(nvidia.div(1.0f, 0x1p127f), 0x1p-127f);
  EXPECT_EQ(ieee.div(1.0f, 0x1p127f), 0x1p-127f);
}

TEST(rules, variance_rounds_once_or_twice) {
  const float eps = 1e-6f;
  int different = 0;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const float sum = float_of(0x3A000000 + i * 40961);
    const float inverse = 1.0f / 1536.0f;
    const float fused = std::fma(sum, inverse, eps);
    const float quotient = sum / 1536.0f;
    const float stepwise = quotient + eps;
    EXPECT_EQ(bits_of(nvidia.variance(sum, 1536, eps)), bits_of(fused));
    EXPECT_EQ(bits_of(ieee.variance(sum, 1536, eps)), bits_of(stepwise));
    EXPECT_EQ(bits_of(ieee.variance(sum, 512, eps)), bits_of(sum * 0x1p-9f + eps));
    EXPECT_EQ(bits_of(nvidia.variance(sum, 512, eps)), bits_of(sum * 0x1p-9f + eps));
    different += bits_of(fused) != bits_of(stepwise);
  }
  EXPECT_GT(different, 100);
}

// For an amax f * 2^e of bf16 every way to write the quotient gives the same exponent, in every
// profile: e - offset for f up to a break, one more above.
TEST(rules, scale_exponent_of_every_bf16_amax) {
  struct limit_rule {
    float limit;
    float last_f;
    int offset;
  };
  const limit_rule limits[] = {{6.0f, 1.5f, 2}, {448.0f, 1.75f, 8}, {224.0f, 1.75f, 7}};
  for (const Rules* rules : {&nvidia, &ieee}) {
    for (const limit_rule& l : limits) {
      for (std::uint32_t code = 0x0600; code < 0x7F80; ++code) {  // quotients stay normal
        const float amax = decode_bf16(static_cast<std::uint16_t>(code));
        int exponent = 0;
        const float f = 2 * std::frexp(amax, &exponent);
        exponent -= 1;
        const int expected = f <= l.last_f ? exponent - l.offset : exponent - l.offset + 1;
        for (const quotient form : {quotient::div, quotient::mul, quotient::true_div}) {
          const float q = rules->scale_quotient(*rules, amax, l.limit, form);
          ASSERT_EQ(rules->scale_exponent(q), static_cast<float>(expected))
              << rules->name << ", amax " << amax << " over " << l.limit;
        }
      }
    }
  }
}

TEST(rules, quotients_are_computed_as_written) {
  const float a = 0x1.234568p3f;
  EXPECT_EQ(bits_of(nvidia.scale_quotient(nvidia, a, 448.0f, quotient::mul)),
            bits_of(a * float_of(0x3B124925)));
  EXPECT_EQ(bits_of(nvidia.scale_quotient(nvidia, a, 6.0f, quotient::mul)),
            bits_of(a * float_of(0x3E2AAAAB)));
  int different = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const float x = float_of(0x3F800000 + i * 7919);
    const float exact = nvidia.scale_quotient(nvidia, x, 6.0f, quotient::true_div);
    EXPECT_EQ(bits_of(exact), bits_of(x / 6.0f));
    EXPECT_EQ(bits_of(ieee.scale_quotient(ieee, x, 6.0f, quotient::div)), bits_of(x / 6.0f));
    different += bits_of(nvidia.scale_quotient(nvidia, x, 6.0f, quotient::div)) != bits_of(exact);
  }
  EXPECT_GT(different, 250);
}

TEST(rules, exponent_limits_and_bytes) {
  EXPECT_EQ(nvidia.limit_exponent(infinity, -127, 127), 127.0f);
  EXPECT_EQ(nvidia.limit_exponent(-infinity, -127, 127), -127.0f);
  EXPECT_EQ(nvidia.limit_exponent(5, -127, 127), 5.0f);
  EXPECT_EQ(nvidia.exponent_byte(0), 127);
  EXPECT_EQ(nvidia.exponent_byte(-127), 0);
  EXPECT_EQ(nvidia.exponent_byte(-140), 0);
  EXPECT_EQ(nvidia.exponent_byte(127), 254);
  EXPECT_EQ(nvidia.exponent_byte(128), 255);
  EXPECT_EQ(nvidia.exponent_byte(infinity), 255);
}

TEST(rules, floors_and_amax_ignore_nan) {
  const float nan = float_of(0xFFC00000);
  EXPECT_EQ(nvidia.floor_amax(nan, 1e-4f), 1e-4f);
  EXPECT_EQ(nvidia.floor_amax(0.0f, 1e-4f), 1e-4f);
  EXPECT_EQ(nvidia.floor_amax(2.0f, 1e-4f), 2.0f);
  EXPECT_EQ(nvidia.amax(nan, -3.0f), 3.0f);
  EXPECT_EQ(nvidia.amax(3.0f, nan), 3.0f);
  EXPECT_EQ(nvidia.amax(1.0f, -infinity), infinity);
  EXPECT_EQ(bits_of(nvidia.amax(nan, nan)), canonical_nan_bits);
}

TEST(rules, nvfp4_scale_and_values) {
  EXPECT_EQ(nvidia.nvfp4_scale(nvidia, 6.0f), 0x38);                  // 1
  EXPECT_EQ(nvidia.nvfp4_scale(nvidia, 0.0f), 0x01);                  // 2^-9
  EXPECT_EQ(nvidia.nvfp4_scale(nvidia, float_of(0x7FFFFFFF)), 0x01);  // NaN
  EXPECT_EQ(nvidia.nvfp4_scale(nvidia, infinity), 0x7E);              // 448
  EXPECT_EQ(nvidia.nvfp4_scale(nvidia, 6 * 448.0f), 0x7E);
  EXPECT_EQ(bits_of(nvidia.nvfp4_value(8)), 0u);  // +0
  EXPECT_EQ(nvidia.nvfp4_value(0xF), -6.0f);
  EXPECT_EQ(nvidia.nvfp4_value(1), 0.5f);
}

TEST(rules, integer_scale) {
  EXPECT_EQ(nvidia.integer_scale(1.0f), 127);
  EXPECT_EQ(nvidia.integer_scale(1.5f), 128);
  EXPECT_EQ(nvidia.integer_scale(4.0f), 129);
  EXPECT_EQ(nvidia.integer_scale(0.0f), 0);
  EXPECT_EQ(nvidia.integer_scale(-1.0f), 0);
  EXPECT_EQ(nvidia.integer_scale(0x1p-127f), 0);
  EXPECT_EQ(nvidia.integer_scale(float_of(0x00400001)), 1);
  EXPECT_EQ(nvidia.integer_scale(0x1p-126f), 1);
  EXPECT_EQ(nvidia.integer_scale(0x1p127f), 254);
  EXPECT_EQ(nvidia.integer_scale(0x1.8p127f), 254);
  EXPECT_EQ(nvidia.integer_scale(infinity), 254);
  EXPECT_EQ(nvidia.integer_scale(float_of(0x7FFFFFFF)), 254);
  EXPECT_EQ(nvidia.integer_multiplier(127), 1.0f);
  EXPECT_EQ(nvidia.integer_multiplier(1), 0x1p126f);
  EXPECT_EQ(nvidia.integer_multiplier(253), 0x1p-126f);
  EXPECT_EQ(bits_of(nvidia.integer_multiplier(254)), 0u);
  EXPECT_EQ(bits_of(nvidia.integer_multiplier(0)), 0u);
}

// One product is rounded, the other is not: which one tells the forms apart.
TEST(rules, rope_contractions) {
  const float even = 0x1.234566p0f;
  const float odd = 0x1.ABCDEEp0f;
  const float c = 0x1.3C4D5Ep-1f;
  const float s = 0x1.9F8E7Ep-1f;
  const float odd_s = odd * s;
  const float even_s = even * s;
  const float odd_c = odd * c;
  const auto same = [](float a, float b) { EXPECT_EQ(bits_of(a), bits_of(b)); };
  same(nvidia.rope_even(even, odd, c, s), std::fma(even, c, -odd_s));
  same(nvidia.rope_odd(even, odd, c, s), std::fma(odd, c, even_s));
  same(nvidia.rope_odd_query(even, odd, c, s), std::fma(even, s, odd_c));
  same(nvidia.inverse_rope_even(even, odd, c, s), std::fma(even, c, odd_s));
  same(nvidia.inverse_rope_odd(even, odd, c, s), std::fma(odd, c, -even_s));
  // With c = 1 and s = 0 a -0 becomes +0, and an infinity spoils its partner.
  same(nvidia.rope_odd(1.0f, -0.0f, 1.0f, 0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(nvidia.rope_even(1.0f, infinity, 1.0f, 0.0f)));
  EXPECT_EQ(nvidia.rope_position(7, 2), 6);
  EXPECT_EQ(nvidia.first_rope_dim(512, 64), 448);
  EXPECT_EQ(nvidia.rope_pair_of(3, 64).even, 6);
  EXPECT_EQ(nvidia.rope_pair_of(3, 64).odd, 7);
}

TEST(rules, pages_and_slots) {
  EXPECT_TRUE(nvidia.slot_is_live(0));
  EXPECT_FALSE(nvidia.slot_is_live(-1));
  EXPECT_FALSE(nvidia.slot_is_live(-2));
  EXPECT_FALSE(nvidia.slot_is_live(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(nvidia.page_of(145, 64, 3), 2);
  EXPECT_EQ(nvidia.page_offset(2066, 1039680, 64, 584), std::int64_t{2066} * 1039680);
  // Two tokens a page of 128 + 4 bytes: token 1's scale is behind both tokens' data.
  EXPECT_EQ(nvidia.scale_offset(1, 0, 2, 128, 4), 2 * 128 + 4);
  EXPECT_EQ(nvidia.scale_offset(3, 5, 64, 576, 8), 64 * 576 + 3 * 8 + 5);
  const std::uint8_t bytes[4] = {0x12, 0x34, 0x56, 0xF8};
  EXPECT_EQ(nvidia.pack_scales(bytes), 0xF8563412u);
  EXPECT_EQ(nvidia.remap_index(-1, 64, 128), -1);
  EXPECT_EQ(nvidia.remap_index(130, 64, 128), 2 * 128 + 2);
}

}  // namespace
}  // namespace kvcts
