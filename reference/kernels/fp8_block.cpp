#include "reference/kernels/fp8_block.h"

namespace kvcts {
namespace {

float scaled(const Rules& rules, fp8_scaling scaling, float x, float exponent) {
  switch (scaling) {
    case fp8_scaling::divide:
      return rules.div(x, rules.exp2_int(exponent));
    case fp8_scaling::true_divide:
      return rules.true_div(x, rules.exp2_int(exponent));
    case fp8_scaling::multiply:
      break;
  }
  return mul(x, rules.exp2_int(-exponent));
}

}  // namespace

float block_amax(const Rules& rules, const float* x, std::int64_t n) {
  float amax = abs(x[0]);
  for (std::int64_t i = 1; i < n; ++i) amax = rules.amax(amax, x[i]);
  return amax;
}

float quantize_fp8_block(const Rules& rules, const fp8_form& form, const float* x, std::int64_t n,
                         fp8_format format, std::uint8_t* codes) {
  const float limit = fp8_limit(format);
  const float amax = rules.floor_amax(block_amax(rules, x, n), form.amax_floor);
  const float q = rules.scale_quotient(rules, amax, limit, form.scale_as_written);
  const float exponent = rules.scale_exponent(q);
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = scaled(rules, form.scaling, x[i], exponent);
    const float limited = form.clamped ? rules.clamp_before_encode(value, limit) : value;
    codes[i] = rules.encode_e4m3(limited, format);
  }
  return exponent;
}

}  // namespace kvcts
