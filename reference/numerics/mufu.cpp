#include "reference/numerics/mufu.h"

#include "reference/numerics/arithmetic.h"
#include "reference/numerics/mufu_core.h"

namespace kvcts {

float rcp_approx_ftz(float x) { return float_of(mufu::rcp_bits(bits_of(x), rcp_segments)); }

float rsqrt_approx_ftz(float x) { return float_of(mufu::rsqrt_bits(bits_of(x), rsqrt_segments)); }

float ex2_approx_ftz(float x) { return float_of(mufu::ex2_bits(bits_of(x), ex2_segments)); }

float ex2_approx(float x) { return float_of(mufu::ex2_full_range_bits(bits_of(x), ex2_segments)); }

float div_full(float a, float b) {
  return float_of(mufu::div_full_bits(bits_of(a), bits_of(b), rcp_segments));
}

float exp_approx(float x) { return ex2_approx(mul(x, float_of(0x3FB8AA3B))); }  // RN(log2(e))

}  // namespace kvcts
