#include "reference/formats/e4m3.h"

#include <cmath>

#include "reference/formats/round_and_pack.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {

std::uint8_t encode_e4m3fn(float x) {
  if (std::isnan(x)) {
    return 0x7F;
  }
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t sign = bits >> 31;
  const std::uint32_t code = round_and_pack(bits & 0x7FFFFFFF, e4m3fn_format);
  return static_cast<std::uint8_t>(sign << 7 | code);
}

float decode_e4m3fn(std::uint8_t byte) {
  if ((byte & 0x7Fu) == 0x7F) {
    return float_of(canonical_nan_bits);
  }
  const float magnitude = unpack(byte & 0x7Fu, e4m3fn_format);
  return (byte & 0x80u) != 0 ? -magnitude : magnitude;
}

std::uint8_t encode_e4m3fnuz(float x) {
  if (std::isnan(x)) {
    return 0x80;
  }
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t sign = bits >> 31;
  const std::uint32_t code = round_and_pack(bits & 0x7FFFFFFF, e4m3fnuz_format);
  if (code == 0) {
    return 0x00;  // 0x80 is the NaN
  }
  return static_cast<std::uint8_t>(sign << 7 | code);
}

float decode_e4m3fnuz(std::uint8_t byte) {
  if (byte == 0x80) {
    return float_of(canonical_nan_bits);
  }
  const float magnitude = unpack(byte & 0x7Fu, e4m3fnuz_format);
  return (byte & 0x80u) != 0 ? -magnitude : magnitude;
}

std::uint8_t encode_e4m3(float x, fp8_format format) {
  return format == fp8_format::e4m3fn ? encode_e4m3fn(x) : encode_e4m3fnuz(x);
}

float decode_e4m3(std::uint8_t byte, fp8_format format) {
  return format == fp8_format::e4m3fn ? decode_e4m3fn(byte) : decode_e4m3fnuz(byte);
}

float fp8_limit(fp8_format format) { return format == fp8_format::e4m3fn ? 448.0f : 224.0f; }

}  // namespace kvcts
