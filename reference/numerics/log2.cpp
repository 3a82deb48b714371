#include "reference/numerics/log2.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

// x = 2^exponent * (1 + mantissa * 2^-23), x positive and finite.
struct parts {
  int exponent;
  std::uint32_t mantissa;
};

parts split(float x) {
  const std::uint32_t bits = bits_of(x);
  if (bits >= 0x00800000) {
    return {static_cast<int>(bits >> 23) - 127, bits & 0x7FFFFF};
  }
  const int shift = std::countl_zero(bits) - 8;  // brings a subnormal's first bit to bit 23
  return {-126 - shift, (bits << shift) & 0x7FFFFF};
}

// Up to this mantissa the f32 nearest to log2(x) is the exponent itself. The last place of a log2
// near e doubles with each power of two of |e|; below a power of two it is the smaller one.
std::uint32_t widest_mantissa_rounded_away(int e) {
  const int size = e >= 0 ? e : -e - 1;
  if (size >= 128) return 44;  // subnormal x only
  if (size >= 64) return 22;
  if (size >= 32) return 11;
  if (size >= 16) return 5;
  if (size >= 8) return 2;
  if (size >= 4) return 1;
  return 0;
}

// Shared by both: NaN, negative, zero, infinity.
bool special(float x, float& result) {
  if (std::isnan(x) || x < 0) {
    result = float_of(canonical_nan_bits);
    return true;
  }
  if (x == 0) {
    result = -std::numeric_limits<float>::infinity();
    return true;
  }
  if (std::isinf(x)) {
    result = x;
    return true;
  }
  return false;
}

}  // namespace

float ceil_log2(float x) {
  float result = 0;
  if (special(x, result)) {
    return result;
  }
  const parts p = split(x);
  const bool above = p.mantissa > widest_mantissa_rounded_away(p.exponent);
  return static_cast<float>(above ? p.exponent + 1 : p.exponent);
}

float ceil_log2_exact(float x) {
  float result = 0;
  if (special(x, result)) {
    return result;
  }
  const parts p = split(x);
  return static_cast<float>(p.mantissa != 0 ? p.exponent + 1 : p.exponent);
}

}  // namespace kvcts
