// The device's E2M1 conversions of two bf16 at once rest on identities: each of three lines, or of
// two for finite blocks, is rounded by one fused multiply-add in bf16, and the smallest is the
// code. Here with an exact bf16 multiply-add, for every bf16 and every factor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"

namespace kvcts {
namespace {

// RN to 8 significant bits of a*b + c for c from 128 to 256, a >= 0, b a power of two; right up to
// 512. Exact in double: the sum is taken only where it is below 2^20 and ends at 2^-40; what is
// smaller is no more than a hint of a rest, and so it is here.
std::uint16_t fma_bf16(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double sum = product + static_cast<double>(c);
  const double unit = sum < 256.0 ? 1.0 : 2.0;
  return encode_bf16(static_cast<float>(std::nearbyint(sum / unit) * unit));
}

std::uint16_t smaller(std::uint16_t a, std::uint16_t b) {
  const bool a_is_nan = a > 0x7F80;
  const bool b_is_nan = b > 0x7F80;
  if (a_is_nan || b_is_nan) return a_is_nan ? b : a;
  return std::min(a, b);
}

TEST(PackedE2m1, ThreeRoundedLinesGiveTheCode) {
  int differences = 0;
  for (int exponent = -126; exponent <= 127; ++exponent) {
    const float factor = std::ldexp(1.0F, -exponent);
    for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
      const float magnitude =
          decode_bf16(static_cast<std::uint16_t>(bits > 0x7F80 ? 0x7F80 : bits));
      const std::uint16_t line1 = fma_bf16(magnitude, factor * 2.0F, 128.0F);
      const std::uint16_t line2 = fma_bf16(magnitude, factor, 130.0F);
      const std::uint16_t line3 = fma_bf16(magnitude, factor * 0.5F, 132.0F);
      const std::uint16_t least = smaller(smaller(line1, line2), line3);
      const std::uint16_t code = smaller(least, std::uint16_t{0x4307});
      const float x = decode_bf16(static_cast<std::uint16_t>(bits));
      // The product is exact but for underflow, where every rounding gives code 0.
      const std::uint8_t right = encode_e2m1(x * factor);
      // Up to 6 no limit is needed.
      if (magnitude * factor <= 6.0F && least != code) ++differences;
      if ((code & 0xFF) != right && ++differences <= 5) {
        ADD_FAILURE() << "bf16 " << bits << " * 2^" << -exponent << ": " << (code & 0xFF)
                      << " instead of " << int{right};
      }
    }
  }
  EXPECT_EQ(differences, 0);
}

// finite_e2m1.h, of every finite amax and every bf16 up to it.
TEST(PackedE2m1, TwoRoundedLinesGiveTheCodeOfFiniteBlocks) {
  constexpr std::uint32_t amax_floor = 0x01C0;  // 6 * 2^-126
  constexpr std::uint32_t infinity = 0x7F80;
  int differences = 0;
  // The last amax of each scale: its block may hold every smaller number.
  for (std::uint32_t amax = amax_floor; amax < infinity; ++amax) {
    const std::uint32_t fields = (amax + 0x3F) & 0xFF80;
    if (amax + 1 < infinity && ((amax + 1 + 0x3F) & 0xFF80) == fields) continue;
    const auto factor_bits = static_cast<std::uint16_t>(0x8000 - fields);
    const float factor = decode_bf16(factor_bits);
    const float doubled = decode_bf16(static_cast<std::uint16_t>(factor_bits + 0x80));
    const auto byte = static_cast<int>((fields >> 7) - 2);
    EXPECT_EQ(factor, std::ldexp(1.0F, 127 - byte));
    EXPECT_EQ(doubled, std::ldexp(1.0F, 128 - byte));
    // The byte is that of the smallest power of two that keeps the block within 6.
    EXPECT_LE(decode_bf16(static_cast<std::uint16_t>(amax)) * factor, 6.0F);
    if (amax + 1 < infinity) {
      EXPECT_GT(decode_bf16(static_cast<std::uint16_t>(amax + 1)) * factor, 6.0F);
    }
    for (std::uint32_t bits = 0; bits <= amax; ++bits) {
      const float x = decode_bf16(static_cast<std::uint16_t>(bits));
      const std::uint16_t line1 = fma_bf16(x, doubled, 252.0F);
      const std::uint16_t line2 = fma_bf16(x, factor, 256.0F);
      const int code = (std::min(line1, line2) & 7) ^ 4;
      const std::uint8_t right = encode_e2m1(x * factor);
      if (code != right && ++differences <= 5) {
        ADD_FAILURE() << "bf16 " << bits << " * 2^" << 127 - byte << ": " << code << " instead of "
                      << int{right};
      }
    }
  }
  EXPECT_EQ(differences, 0);
}

}  // namespace
}  // namespace kvcts
