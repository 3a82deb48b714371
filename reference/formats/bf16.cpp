#include "reference/formats/bf16.h"

#include <cmath>

#include "reference/formats/round_and_pack.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {

std::uint16_t encode_bf16(float x) {
  if (std::isnan(x)) {
    return 0x7FFF;
  }
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t sign = bits >> 31;
  const std::uint32_t code = round_and_pack(bits & 0x7FFFFFFF, bf16_format);
  return static_cast<std::uint16_t>(sign << 15 | code);
}

float decode_bf16(std::uint16_t bits) { return float_of(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace kvcts
