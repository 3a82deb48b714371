// Roundings, codes, exponents and approximate instructions of the vocabulary against the oracle's,
// over wide sweeps. Vectors of 16 bytes, which every machine has; the wider targets run the same
// source in the agreement of whole kernels.
#define KVCTS_TARGET vocabulary
#define KVCTS_VECTOR_BYTES 16
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "optimized/warp/rows.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/ieee.h"
#include "reference/numerics/log2.h"
#include "reference/numerics/mufu.h"

namespace kvcts {
namespace {

using G = vocabulary::group;

G::u32 lanes_of(const std::uint32_t (&x)[32]) {
  G::u32 r;
  for (int i = 0; i < 32; ++i) r.v[i / 4][i % 4] = x[i];
  return r;
}

// Calls f with 32 bit patterns at a time, from `first` to `last` in steps; compares f's lanes with
// the expected word of each.
void sweep(std::uint64_t first, std::uint64_t last, std::uint64_t step,
           const std::function<G::u32(const G::f32&)>& f,
           const std::function<std::uint32_t(float)>& expected) {
  int differ = 0;
  for (std::uint64_t at = first; at <= last && differ < 5; at += 32 * step) {
    std::uint32_t x[32];
    for (std::uint64_t i = 0; i < 32; ++i) {
      x[i] = static_cast<std::uint32_t>(at + i * step <= last ? at + i * step : first);
    }
    const G::u32 got = f(G::as_f32(lanes_of(x)));
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t right = expected(float_of(x[i]));
      if (got.v[i / 4][i % 4] == right) continue;
      ++differ;
      ADD_FAILURE() << std::hex << "of 0x" << x[i] << ": expected 0x" << right << ", got 0x"
                    << got.v[i / 4][i % 4];
    }
  }
}
// Every class of f32, and the mantissas just above and below each power of two.
void sweep_all(const std::function<G::u32(const G::f32&)>& f,
               const std::function<std::uint32_t(float)>& expected) {
  sweep(0, 0xFFFFFFFFu, 4093, f, expected);
  for (std::uint64_t exponent = 0; exponent < 512; ++exponent) {
    const std::uint64_t power = exponent << 23;
    sweep(power < 64 ? 0 : power - 64, power + 63, 1, f, expected);
  }
}

TEST(Vocabulary, RoundsToBf16) {
  sweep_all([](const G::f32& x) { return vocabulary::bf16_code<G>(x); },
            [](float x) { return std::uint32_t{encode_bf16(x)}; });
}

TEST(Vocabulary, EncodesE2m1) {
  sweep_all([](const G::f32& x) { return vocabulary::e2m1_code<G>(x); },
            [](float x) { return std::uint32_t{encode_e2m1(x)}; });
}

template <vocabulary::e4m3_form Form>
void expect_codes(fp8_format format, bool clamp) {
  const auto code = [](const G::f32& x) { return vocabulary::e4m3_code_of<G, Form>(x); };
  const auto right = [=](float x) {
    return std::uint32_t{encode_e4m3(clamp ? clamp_magnitude(x, fp8_limit(format)) : x, format)};
  };
  sweep_all(code, right);
  // From below the subnormals to above the limits, finely.
  sweep(0x39000000, 0x44000000, 61, code, right);
  sweep(0xB9000000, 0xC4000000, 61, code, right);
}
TEST(Vocabulary, EncodesE4m3InEachForm) {
  expect_codes<vocabulary::e4m3_form::clamped>(fp8_format::e4m3fn, true);
  expect_codes<vocabulary::e4m3_form::unclamped>(fp8_format::e4m3fn, false);
  expect_codes<vocabulary::e4m3_form::fnuz_clamped>(fp8_format::e4m3fnuz, true);
  expect_codes<vocabulary::e4m3_form::fnuz_unclamped>(fp8_format::e4m3fnuz, false);
}

TEST(Vocabulary, HasTheScaleExponent) {
  const auto exponent = [](const G::f32& x) { return vocabulary::ceil_log2_biased<G>(x); };
  const auto right = [](float x) {
    return static_cast<std::uint32_t>(std::min(ceil_log2(x), 128.0f) + 127.0f);
  };
  sweep(0x00800000, 0x7F800000, 4093, exponent, right);
  for (std::uint64_t field = 1; field < 255; ++field) {
    sweep(field << 23, (field << 23) + 63, 1, exponent, right);
  }
}

TEST(Vocabulary, HasPowersOfTwo) {
  for (std::uint32_t biased = 1; biased < 255; ++biased) {
    const float power = G::first(vocabulary::power_of_biased<G>(G::splat(biased)));
    const float inverse = G::first(vocabulary::inverse_power_of_biased<G>(G::splat(biased)));
    EXPECT_EQ(power, std::ldexp(1.0f, static_cast<int>(biased) - 127));
    EXPECT_EQ(inverse, std::ldexp(1.0f, 127 - static_cast<int>(biased)));
  }
  EXPECT_EQ(bits_of(G::first(vocabulary::power_of_biased<G>(G::splat(255)))), 0x7F800000u);
  EXPECT_EQ(bits_of(G::first(vocabulary::inverse_power_of_biased<G>(G::splat(255)))), 0u);
}

TEST(Vocabulary, HasTheReciprocalRoot) {
  for (std::uint64_t b = 0; b <= 0xFFFFFFFFu; b += 1021) {
    const float x = float_of(static_cast<std::uint32_t>(b));
    ASSERT_EQ(bits_of(vocabulary::rsqrt<profile::nvidia>(x)), bits_of(rsqrt_approx_ftz(x))) << x;
    if (x > 0) {
      ASSERT_EQ(bits_of(vocabulary::rsqrt<profile::ieee>(x)), bits_of(rsqrt_rn(x))) << x;
    }
  }
}

TEST(Vocabulary, DividesByOneValue) {
  std::uint64_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    std::uint32_t a[32];
    for (std::uint32_t& x : a) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      x = static_cast<std::uint32_t>(state >> 32);
    }
    // Divisors of every size, infinities and NaN.
    const std::uint32_t b = round % 5 == 0 ? a[0] & 0x807FFFFFu : a[0];
    const G::f32 divisor = G::as_f32(G::splat(round == 0 ? 0x7F800000u : b));
    const G::f32 full = vocabulary::canonical<G>(
        vocabulary::div_uniform<profile::nvidia>(G::as_f32(lanes_of(a)), divisor));
    for (int i = 0; i < 32; ++i) {
      ASSERT_EQ(bits_of(full.v[i / 4][i % 4]), bits_of(div_full(float_of(a[i]), G::first(divisor))))
          << float_of(a[i]) << " / " << G::first(divisor);
    }
  }
}

// Products near the sum's own size and far from it, results that are ties, subnormal or infinite.
TEST(Vocabulary, MultipliesAndAddsWithOneRounding) {
  std::uint64_t state = 1;
  const auto drawn = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 32);
  };
  for (int round = 0; round < 200000; ++round) {
    // Few significant bits make ties; one exponent for all makes cancellations.
    const std::uint32_t mask = round % 4 == 0 ? 0xFFFFFFFFu : 0xFFFFFFFFu << (drawn() % 23);
    const std::uint32_t exponent = (drawn() % 40 + 107) << 23;
    std::uint32_t x[3][32];
    for (int i = 0; i < 32; ++i) {
      for (int k = 0; k < 3; ++k) {
        x[k][i] = drawn() & mask;
        if (round % 3 != 0) x[k][i] = (x[k][i] & 0x80FFFFFFu) | (k == 1 ? 0x3F000000u : exponent);
      }
      // The sum all but vanishes.
      if (i % 4 == 0) x[2][i] = bits_of(-float_of(x[0][i]) * float_of(x[1][i])) ^ (drawn() & 1u);
    }
    const G::f32 got =
        G::fma(G::as_f32(lanes_of(x[0])), G::as_f32(lanes_of(x[1])), G::as_f32(lanes_of(x[2])));
    for (int i = 0; i < 32; ++i) {
      const float a = float_of(x[0][i]);
      const float b = float_of(x[1][i]);
      const float c = float_of(x[2][i]);
      const float right = std::fma(a, b, c);
      const float here = got.v[i / 4][i % 4];
      ASSERT_TRUE(std::isnan(right) ? std::isnan(here) : bits_of(here) == bits_of(right))
          << a << " * " << b << " + " << c << ": expected " << right << ", got " << here;
    }
  }
}

TEST(Vocabulary, HasTheExponentialBelowZero) {
  const auto canonical_bits = [](const G::f32& x) { return G::bits(vocabulary::canonical<G>(x)); };
  for (const auto& [first, last] :
       {std::pair{0x80000000u, 0xC3100000u}, {0xFF7FFFF0u, 0xFF80000Fu}}) {
    sweep(
        first, last, 251,
        [&](const G::f32& x) {
          return canonical_bits(vocabulary::exp_of_nonpositive<profile::nvidia>(x));
        },
        [](float x) { return bits_of(exp_approx(x)); });
    sweep(
        first, last, 251,
        [&](const G::f32& x) {
          return canonical_bits(vocabulary::exp_of_nonpositive<profile::ieee>(x));
        },
        [](float x) { return bits_of(exp_rn(x)); });
  }
  EXPECT_EQ(bits_of(G::first(vocabulary::exp_of_nonpositive<profile::ieee>(
                G::as_f32(G::splat(0xC16912CD))))),  // the hardest to round
            bits_of(exp_rn(float_of(0xC16912CD))));
}

TEST(Vocabulary, DividesByOneToTwo) {
  sweep(
      0x3F800000, 0x40000000, 3,
      [](const G::f32& b) {
        G::f32 a = G::as_f32((G::bits(b) & 0x3F7FFFFFu) - 0x00400000u);
        G::f32 same = a;
        vocabulary::divide_both_by_one_to_two<profile::nvidia>(a, same, b);
        return G::select(G::bits(a) == G::bits(same), G::bits(a), G::splat(0));
      },
      [](float b) {
        return bits_of(div_full(float_of((bits_of(b) & 0x3F7FFFFFu) - 0x00400000u), b));
      });
}

}  // namespace
}  // namespace kvcts
