#include "reference/formats/ue8m0.h"

#include <cmath>

#include "reference/numerics/arithmetic.h"

namespace kvcts {

float decode_ue8m0(std::uint8_t byte) {
  if (byte == 0xFF) {
    return float_of(canonical_nan_bits);
  }
  if (byte == 0) {
    return float_of(0x00400000);  // 2^-127, an f32 subnormal
  }
  return float_of(static_cast<std::uint32_t>(byte) << 23);
}

std::uint8_t encode_ue8m0(float x) {
  if (x == 0) {
    return 0;
  }
  if (!std::isfinite(x) || x < 0) {
    return 0xFF;
  }
  const std::uint32_t bits = bits_of(x);
  if (bits < 0x00800000) {
    return bits > 0x00600000 ? 1 : 0;  // 1.5 * 2^-127 lies between bytes 0 and 1
  }
  const std::uint32_t byte = bits >> 23;
  const std::uint32_t mantissa = bits & 0x7FFFFF;
  const std::uint32_t half = 0x400000;  // 1.5 * 2^e lies between 2^e and 2^(e+1)
  const bool odd = (byte & 1) != 0;
  const bool up = mantissa > half || (mantissa == half && odd);
  return static_cast<std::uint8_t>(up && byte < 254 ? byte + 1 : byte);
}

}  // namespace kvcts
