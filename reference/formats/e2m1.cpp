#include "reference/formats/e2m1.h"

#include <cmath>

#include "reference/formats/round_and_pack.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {

std::uint8_t encode_e2m1(float x) {
  if (std::isnan(x)) {
    return 0x7;
  }
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t sign = bits >> 31;
  const std::uint32_t code = round_and_pack(bits & 0x7FFFFFFF, e2m1_format);
  return static_cast<std::uint8_t>(sign << 3 | code);
}

float decode_e2m1(std::uint8_t code) {
  const float magnitude = unpack(code & 0x7u, e2m1_format);
  return (code & 0x8u) != 0 ? -magnitude : magnitude;
}

std::uint8_t pack_e2m1(std::uint8_t even, std::uint8_t odd) {
  return static_cast<std::uint8_t>(even | odd << 4);
}

}  // namespace kvcts
