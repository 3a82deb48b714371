#include "reference/kernels/mxfp4_block.h"

#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

const float amax_floor = float_of(0x01C00000);  // 6 * 2^-126

}  // namespace

mxfp4_block quantize_mxfp4_block(const float values[32], const Rules& rules,
                                 const mxfp4_form& form) {
  float amax = abs(values[0]);
  for (int i = 1; i < 32; ++i) amax = rules.amax(amax, values[i]);
  const float floored = rules.floor_amax(amax, amax_floor);
  const float q = rules.scale_quotient(rules, floored, 6.0F, form.scale_as_written);
  const float exponent = rules.limit_exponent(rules.scale_exponent(q), -127.0F, 127.0F);
  const float inverse =
      form.inverse_divides ? rules.div(1.0F, rules.exp2_int(exponent)) : rules.exp2_int(-exponent);
  mxfp4_block block;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t even = rules.encode_e2m1(mul(values[2 * i], inverse));
    const std::uint8_t odd = rules.encode_e2m1(mul(values[2 * i + 1], inverse));
    block.packed[i] = rules.pack_nibbles(even, odd);
  }
  block.scale = rules.exponent_byte(exponent);
  return block;
}

}  // namespace kvcts
