#include "reference/numerics/ieee.h"

#include <cmath>
#include <limits>

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

// An unevaluated sum of two doubles, |low| at most half a unit of high: about 106 bits.
struct wide {
  double high;
  double low;
};

wide two_sum(double a, double b) {
  const double sum = a + b;
  const double from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}

wide two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

wide plus(wide a, wide b) {
  const wide high = two_sum(a.high, b.high);
  return two_sum(high.high, high.low + (a.low + b.low));
}

wide times(wide a, wide b) {
  const wide high = two_product(a.high, b.high);
  return two_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

wide over(wide a, double n) {
  const double first = a.high / n;
  const double rest = std::fma(-first, n, a.high) + a.low;
  return two_sum(first, rest / n);
}

// e^x = 2^k * e^r with |r| <= log(2)/2, e^r by its series to about 2^-100. The nearest that any f32
// x brings e^x to a tie is 2^-52.6 of it (x = 0xC16912CD), so that the high part alone rounds
// rightly.
float exp_near_a_tie(float x) {
  constexpr wide log_2{0x1.62E42FEFA39EFp-1, 0x1.ABC9E3B39803Fp-56};
  constexpr double inverse_log_2 = 0x1.71547652B82FEp+0;
  const double k = std::nearbyint(x * inverse_log_2);
  const wide r = plus({x, 0}, times({-k, 0}, log_2));
  wide sum{1, 0};
  for (int n = 25; n >= 1; --n) {
    sum = plus({1, 0}, over(times(r, sum), n));
  }
  const int exponent = static_cast<int>(k);
  return static_cast<float>(std::ldexp(sum.high, exponent));
}

}  // namespace

// Two roundings in double, then one to f32. That this is RN(1/sqrt(x)) for every x is not a
// theorem: a test proves it for all mantissas of both octaves, and 4^k scales them exactly.
float rsqrt_rn(float x) {
  if (std::isnan(x) || x < 0) {
    return float_of(canonical_nan_bits);
  }
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

float exp_rn(float x) {
  if (std::isnan(x)) {
    return float_of(canonical_nan_bits);
  }
  if (x > 89) {
    return std::numeric_limits<float>::infinity();
  }
  if (x < -104) {
    return 0.0f;  // below 2^-150
  }
  if (x == 0) {
    return 1.0f;
  }
  // Where every value that near to the library's rounds alike, it is settled.
  const double near = std::exp(static_cast<double>(x));
  const auto below = static_cast<float>(near * (1 - 0x1p-45));
  const auto above = static_cast<float>(near * (1 + 0x1p-45));
  return below == above ? below : exp_near_a_tie(x);
}

}  // namespace kvcts
