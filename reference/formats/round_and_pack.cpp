#include "reference/formats/round_and_pack.h"

#include "reference/numerics/arithmetic.h"

namespace kvcts {

float unpack(std::uint32_t code, const small_float& format) {
  const std::uint32_t hidden = 1u << format.mantissa_bits;
  const std::uint32_t mantissa = code & (hidden - 1);
  const int field = static_cast<int>(code >> format.mantissa_bits);
  const std::uint32_t significand = field == 0 ? mantissa : mantissa | hidden;
  const int exponent = std::max(field, 1) - format.bias - format.mantissa_bits;
  const float place = float_of(static_cast<std::uint32_t>(exponent + 127) << 23);  // 2^exponent
  return static_cast<float>(significand) * place;
}

}  // namespace kvcts
