#include "reference/numerics/arithmetic.h"

#include <cmath>
#include <cstring>

namespace kvcts {
namespace {

float canonical(float x) { return std::isnan(x) ? float_of(canonical_nan_bits) : x; }

}  // namespace

std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

float float_of(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float add(float a, float b) { return canonical(a + b); }
float sub(float a, float b) { return canonical(a - b); }
float mul(float a, float b) { return canonical(a * b); }
float fma(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
float true_div(float a, float b) { return canonical(a / b); }

float max(float a, float b) {
  if (std::isnan(a)) {
    return canonical(b);
  }
  if (std::isnan(b)) {
    return a;
  }
  if (a == b) {
    return std::signbit(a) ? b : a;  // +0 > -0
  }
  return a > b ? a : b;
}

float min(float a, float b) {
  if (std::isnan(a)) {
    return canonical(b);
  }
  if (std::isnan(b)) {
    return a;
  }
  if (a == b) {
    return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

float abs(float x) { return float_of(bits_of(x) & 0x7FFFFFFF); }

float clamp_magnitude(float x, float limit) {
  if (std::isnan(x)) {
    return limit;
  }
  return std::copysign(min(abs(x), limit), x);
}

}  // namespace kvcts
