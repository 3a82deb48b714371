// The one place where f32 becomes a narrower float: rounding, subnormals, saturation.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvcts {

// A format of exponent and mantissa fields below a sign. Values with exponent field 0 are
// subnormal, in units of 2^(1 - bias - mantissa_bits).
struct small_float {
  int mantissa_bits;
  int bias;
  std::uint32_t largest;  // the code of the largest magnitude, to which greater ones saturate
};

constexpr small_float e2m1_format{1, 1, 0x7};       // 6
constexpr small_float e4m3fn_format{3, 7, 0x7E};    // 448
constexpr small_float e4m3fnuz_format{3, 8, 0x7F};  // 240
constexpr small_float bf16_format{7, 127, 0x7F80};  // infinity

// Bits of a magnitude (f32, sign bit clear, not NaN) -> the format's code without sign: nearest,
// ties to the even code, saturating.
inline std::uint32_t round_and_pack(std::uint32_t magnitude, const small_float& format) {
  const std::uint32_t field = magnitude >> 23;
  const std::uint32_t mantissa = magnitude & 0x7FFFFF;
  // magnitude = significand * 2^(exponent - 23)
  const std::uint32_t significand = field == 0 ? mantissa : mantissa | 0x800000;
  const int exponent = field == 0 ? -126 : static_cast<int>(field) - 127;

  // Count in units of the format's last place; below its normal range that place stands still.
  const int smallest = 1 - format.bias;
  const int place = std::max(exponent, smallest);
  const int dropped = 23 - format.mantissa_bits + (place - exponent);  // bits that do not fit
  if (dropped > 24) {
    return 0;  // less than half of the smallest subnormal
  }
  std::uint32_t units = significand >> dropped;
  const std::uint32_t rest = significand & ((1u << dropped) - 1);
  const std::uint32_t half = 1u << (dropped - 1);
  const bool odd = (units & 1) != 0;
  if (rest > half || (rest == half && odd)) {
    units += 1;
  }
  // A normal's hidden bit carries into the exponent field, and so does a round-up.
  const std::uint32_t code =
      (static_cast<std::uint32_t>(place - smallest) << format.mantissa_bits) + units;
  return std::min(code, format.largest);
}

// The exact f32 value of a code without sign. Not for bf16, whose values reach beyond f32 normals.
float unpack(std::uint32_t code, const small_float& format);

}  // namespace kvcts
