// A second definition of the encoders, sharing nothing with them: the magnitudes of a format
// written down in code order, and the nearest of them found by comparing distances, exact in double
// wherever they can be equal. Ties go to the even code.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kvcts::definition {

// The magnitude of code c is values[c]; the last one saturates.
using magnitudes = std::vector<double>;

inline magnitudes e2m1_magnitudes() { return {0, 0.5, 1, 1.5, 2, 3, 4, 6}; }

// Codes 0 to `last` of a format with the bias: 2^(1-bias) * m/2^k below, 2^(e-bias) * (1 + m/2^k).
inline magnitudes magnitudes_of(int mantissa_bits, int bias, int last) {
  magnitudes values;
  const int per_binade = 1 << mantissa_bits;
  for (int code = 0; code <= last; ++code) {
    const int exponent = code / per_binade;
    const double fraction = static_cast<double>(code % per_binade) / per_binade;
    values.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                   : std::ldexp(1 + fraction, exponent - bias));
  }
  return values;
}
inline magnitudes e4m3fn_magnitudes() { return magnitudes_of(3, 7, 0x7E); }
inline magnitudes e4m3fnuz_magnitudes() { return magnitudes_of(3, 8, 0x7F); }
// 0x7F80, infinity, stands where the next number would be: 2^128.
inline magnitudes bf16_magnitudes() { return magnitudes_of(7, 127, 0x7F80); }

inline float from_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// True where the magnitude x is nearer to code + 1 than to code, or as near and code is odd.
inline bool next_is_nearer(double x, const magnitudes& values, std::size_t code) {
  const double to_lower = x - values[code];
  const double to_upper = values[code + 1] - x;
  return to_upper < to_lower || (to_upper == to_lower && code % 2 == 1);
}

// Finds the code of growing magnitudes: each call starts at the code of the last one.
class nearest_code {
 public:
  explicit nearest_code(const magnitudes& values) : values_(values) {}
  // The next magnitude may be any.
  void restart() { code_ = 0; }

  std::uint32_t operator()(double x) {
    while (code_ + 1 < values_.size() && next_is_nearer(x, values_, code_)) {
      ++code_;
    }
    return static_cast<std::uint32_t>(code_);
  }

 private:
  const magnitudes& values_;
  std::size_t code_ = 0;
};

// What a format does beside rounding.
struct encoding {
  magnitudes values;
  int sign_shift;
  std::uint32_t nan;
  bool negative_zero;

  std::uint32_t with_sign(std::uint32_t code, bool negative) const {
    const bool keep = negative && (negative_zero || code != 0);
    return keep ? code | 1u << sign_shift : code;
  }
};

inline encoding e2m1_encoding() { return {e2m1_magnitudes(), 3, 0x7, true}; }
inline encoding e4m3fn_encoding() { return {e4m3fn_magnitudes(), 7, 0x7F, true}; }
inline encoding e4m3fnuz_encoding() { return {e4m3fnuz_magnitudes(), 7, 0x80, false}; }
inline encoding bf16_encoding() { return {bf16_magnitudes(), 15, 0x7FFF, true}; }

}  // namespace kvcts::definition
