// rsqrt and division of both profiles on the CPU, by the coefficients that were measured on the
// device (data shared with the oracle; the arithmetic is this file's own).
#pragma once

#include "reference/numerics/mufu_tables.h"
#include "reference/numerics/rules.h"  // the profile's name only

namespace kvcts::KVCTS_TARGET {

KVCTS_INLINE std::uint32_t bits_of_f32(float x) {
  std::uint32_t r;
  __builtin_memcpy(&r, &x, 4);
  return r;
}
KVCTS_INLINE float f32_of_bits(std::uint32_t x) {
  float r;
  __builtin_memcpy(&r, &x, 4);
  return r;
}

// C0 - C1 x + C2 S(x) of a 17-bit x in the segment, as the bits of a number in [0.5, 1]: S is the
// hardware's square, which drops most of the products with the low 9 bits.
KVCTS_INLINE std::uint32_t falling_quadratic(const mufu_segment& c, std::uint32_t x,
                                             std::uint32_t bias) {
  const std::uint32_t top = x >> 9;
  std::uint32_t square = top * top >> 1;
  for (int bit = 2; bit <= 8; ++bit) square += (0u - (x >> bit & 1u)) & (x >> (18 - bit));
  const std::uint64_t t = (static_cast<std::uint64_t>(c.c0) << 14) + bias -
                          static_cast<std::uint64_t>(c.c1) * x +
                          (static_cast<std::uint64_t>(c.c2) * square << 1);
  return 0x3E800000u + static_cast<std::uint32_t>(t >> 16);
}

template <profile P>
KVCTS_INLINE float rsqrt(float x) {
  if constexpr (P == profile::ieee) {
    return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
  }
  const std::uint32_t b = bits_of_f32(x);
  const std::uint32_t magnitude = b & 0x7FFFFFFFu;
  if (magnitude < 0x00800000u) return f32_of_bits((b & 0x80000000u) | 0x7F800000u);
  if (b == 0x7F800000u) return 0.0f;
  if (b > 0x7F800000u) return f32_of_bits(0x7FFFFFFFu);  // NaN or negative
  // x = 4^half * y, y in [1, 4)
  const int half = (static_cast<int>(b >> 23) - 127) >> 1;
  const std::uint32_t i = b - 0x3F800000u - (static_cast<std::uint32_t>(half) << 24);
  const std::uint32_t root =
      i == 0 ? 0x3F800000u : falling_quadratic(rsqrt_segments[i >> 17], i & 0x1FFFFu, 16383);
  return f32_of_bits(root - (static_cast<std::uint32_t>(half) << 23));
}

// RN(a * b + c) and RN(a / b) of scalars.
KVCTS_INLINE float fma_scalar(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
KVCTS_INLINE float true_div_scalar(float a, float b) { return a / b; }

// rcp.approx.ftz
KVCTS_INLINE float approximate_reciprocal(float x) {
  const std::uint32_t b = bits_of_f32(x);
  const std::uint32_t sign = b & 0x80000000u;
  const std::uint32_t magnitude = b ^ sign;
  if (magnitude > 0x7F800000u) return f32_of_bits(0x7FFFFFFFu);
  if (magnitude == 0x7F800000u) return f32_of_bits(sign);
  if (magnitude < 0x00800000u) return f32_of_bits(sign | 0x7F800000u);
  const std::uint32_t y =
      falling_quadratic(rcp_segments[magnitude >> 16 & 0x7Fu], (magnitude & 0xFFFFu) << 1, 4046);
  const std::int32_t r = static_cast<std::int32_t>(y) -
                         static_cast<std::int32_t>((magnitude & 0x7F800000u) - 0x3F800000u);
  return f32_of_bits(r < 0x00800000 ? sign : sign | static_cast<std::uint32_t>(r));
}

// The source's plain division by a value that is the same in all lanes.
template <profile P>
KVCTS_INLINE lane_f32 div_uniform(const lane_f32& a, const lane_f32& b) {
  if constexpr (P == profile::ieee) return a / b;
  const float divisor = b.v[0][0];
  const float magnitude = divisor < 0 ? -divisor : divisor;
  float scale = 1.0f;  // which keeps the reciprocal normal
  if (magnitude > 0x1p126f && magnitude <= 0x1.FFFFFEp127f) scale = 0.25f;
  if (magnitude < 0x1p-126f) scale = 0x1p24f;
  return a * scale * approximate_reciprocal(divisor * scale);
}

}  // namespace kvcts::KVCTS_TARGET
