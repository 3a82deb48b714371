// The approximate instructions on raw f32 bits, in integers only. Compiled for the host by the
// oracle and for the device by the sweep that holds it against the hardware, hence the macro and
// the tables as arguments.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/numerics/mufu_tables.h"

#ifdef __CUDACC__
#define KVCTS_MUFU_FUNCTION __host__ __device__ inline
#else
#define KVCTS_MUFU_FUNCTION inline
#endif

namespace kvcts::mufu {

constexpr std::uint32_t nan_bits = 0x7FFFFFFF;
constexpr std::uint32_t infinity_bits = 0x7F800000;
constexpr std::uint32_t sign_bit = 0x80000000;
constexpr std::int64_t smallest_normal = 0x00800000;

// The hardware's truncated square of a 17-bit x: half of the top byte's square, and a shifted x for
// each of the bits 2..8 below it.
KVCTS_MUFU_FUNCTION std::int64_t truncated_square(std::uint32_t x) {
  const std::uint32_t high = x >> 9;
  std::int64_t sum = (high * high) >> 1;
  for (int i = 2; i <= 8; ++i) {
    if ((x >> i & 1) != 0) {
      sum += x >> (18 - i);
    }
  }
  return sum;
}

// Result bits in the base range of rcp and rsqrt, whose polynomials fall: C0 - C1 x + C2 x^2.
KVCTS_MUFU_FUNCTION std::int64_t falling(const mufu_segment& segment, std::uint32_t x,
                                         std::int64_t bias) {
  const std::int64_t t = static_cast<std::int64_t>(segment.c0) * 16384 + bias -
                         static_cast<std::int64_t>(segment.c1) * x +
                         2 * static_cast<std::int64_t>(segment.c2) * truncated_square(x);
  return 0x3E800000 + (t >> 16);
}

// rcp.approx.ftz.f32; `segments` is rcp_segments.
KVCTS_MUFU_FUNCTION std::uint32_t rcp_bits(std::uint32_t bits, const mufu_segment* segments) {
  const std::uint32_t sign = bits & sign_bit;
  const std::uint32_t magnitude = bits & ~sign_bit;
  if (magnitude > infinity_bits) {
    return nan_bits;
  }
  if (magnitude == infinity_bits) {
    return sign;
  }
  if (magnitude < smallest_normal) {
    return sign | infinity_bits;
  }
  const std::uint32_t mantissa = magnitude & 0x7FFFFF;
  const std::int64_t exponent = static_cast<std::int64_t>(magnitude >> 23) - 127;
  const std::int64_t base = falling(segments[mantissa >> 16], (mantissa & 0xFFFF) << 1, 4046);
  const std::int64_t result = base - exponent * 0x800000;
  return result < smallest_normal ? sign : sign | static_cast<std::uint32_t>(result);
}

// rsqrt.approx.ftz.f32; `segments` is rsqrt_segments.
KVCTS_MUFU_FUNCTION std::uint32_t rsqrt_bits(std::uint32_t bits, const mufu_segment* segments) {
  const std::uint32_t sign = bits & sign_bit;
  const std::uint32_t magnitude = bits & ~sign_bit;
  if (magnitude > infinity_bits) {
    return nan_bits;
  }
  if (magnitude < smallest_normal) {
    return sign | infinity_bits;
  }
  if (sign != 0) {
    return nan_bits;
  }
  if (magnitude == infinity_bits) {
    return 0;
  }
  // x = 4^k * base, base in [1, 4)
  const std::int64_t exponent = static_cast<std::int64_t>(magnitude >> 23) - 127;
  const std::int64_t k = exponent >> 1;
  const std::uint32_t i =
      static_cast<std::uint32_t>(static_cast<std::int64_t>(magnitude) - k * 0x1000000) - 0x3F800000;
  const std::int64_t base = i == 0 ? 0x3F800000 : falling(segments[i >> 17], i & 0x1FFFF, 16383);
  return static_cast<std::uint32_t>(base - k * 0x800000);
}

// ex2.approx.ftz.f32; `segments` is ex2_segments.
KVCTS_MUFU_FUNCTION std::uint32_t ex2_bits(std::uint32_t bits, const mufu_segment* segments) {
  const bool negative = (bits & sign_bit) != 0;
  const std::uint32_t magnitude = bits & ~sign_bit;
  if (magnitude > infinity_bits) {
    return nan_bits;
  }
  if (magnitude >= 0x43000000) {  // |x| >= 128
    return negative ? 0 : infinity_bits;
  }
  // g = floor(|x| * 2^23)
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const std::int64_t significand = (magnitude & 0x7FFFFF) | 0x800000;
  std::int64_t g = 0;
  if (exponent >= 0) {
    g = significand << exponent;
  } else if (exponent >= -23) {
    g = significand >> -exponent;
  }
  std::int64_t v = g;
  if (negative) {
    v = (g & 0x7FFFFF) == 0 ? -g : ~g;
  }
  const std::int64_t n = v >> 23;
  const std::uint32_t f = static_cast<std::uint32_t>(v & 0x7FFFFF);
  const mufu_segment& segment = segments[f >> 17];
  const std::uint32_t x = f & 0x1FFFF;
  const std::int64_t significant = (static_cast<std::int64_t>(segment.c0) * 8192 + 6114 +
                                    static_cast<std::int64_t>(segment.c1) * x +
                                    static_cast<std::int64_t>(segment.c2) * truncated_square(x)) >>
                                   15;
  const std::int64_t result = (n + 126) * 0x800000 + significant;
  return result < smallest_normal ? 0 : static_cast<std::uint32_t>(result);
}

KVCTS_MUFU_FUNCTION float as_float(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// RN(a * b) on bits, with the hardware's NaN.
KVCTS_MUFU_FUNCTION std::uint32_t product_bits(std::uint32_t a, std::uint32_t b) {
  const float product = as_float(a) * as_float(b);
  std::uint32_t bits;
  std::memcpy(&bits, &product, sizeof bits);
  return (bits & ~sign_bit) > infinity_bits ? nan_bits : bits;
}

// ex2.approx.f32, which keeps subnormal results: below -126 the square of 2^(x/2).
KVCTS_MUFU_FUNCTION std::uint32_t ex2_full_range_bits(std::uint32_t bits,
                                                      const mufu_segment* segments) {
  constexpr std::uint32_t minus_126 = 0xC2FC0000;
  constexpr std::uint32_t half = 0x3F000000;
  const bool below = bits > minus_126 && bits <= (sign_bit | infinity_bits);  // x < -126
  if (!below) {
    return ex2_bits(bits, segments);
  }
  const std::uint32_t root = ex2_bits(product_bits(bits, half), segments);
  return product_bits(root, root);
}

// div.full.f32; `segments` is rcp_segments. Both operands are scaled where 1/b would leave the
// normal range.
KVCTS_MUFU_FUNCTION std::uint32_t div_full_bits(std::uint32_t a, std::uint32_t b,
                                                const mufu_segment* segments) {
  constexpr std::uint32_t two_to_126 = 0x7E800000;
  constexpr std::uint32_t quarter = 0x3E800000;
  constexpr std::uint32_t two_to_24 = 0x4B800000;
  const std::uint32_t magnitude = b & ~sign_bit;
  if (magnitude > two_to_126 && magnitude < infinity_bits) {
    a = product_bits(a, quarter);
    b = product_bits(b, quarter);
  } else if (magnitude < smallest_normal) {
    a = product_bits(a, two_to_24);
    b = product_bits(b, two_to_24);
  }
  return product_bits(a, rcp_bits(b, segments));
}

}  // namespace kvcts::mufu
