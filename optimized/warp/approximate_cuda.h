// rsqrt and division of both profiles on the device.
#pragma once

#include "optimized/warp/exp.h"
#include "reference/numerics/rules.h"  // the profile's name only

namespace kvcts::device {

template <profile P>
KVCTS_INLINE float rsqrt(float x) {
  if constexpr (P == profile::ieee) return __frsqrt_rn(x);
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// RN(a * b + c) and RN(a / b).
KVCTS_INLINE float fma_scalar(float a, float b, float c) { return __fmaf_rn(a, b, c); }
KVCTS_INLINE float true_div_scalar(float a, float b) { return __fdiv_rn(a, b); }

// The source's plain division.
template <profile P>
KVCTS_INLINE float div(float a, float b) {
  if constexpr (P == profile::ieee) return __fdiv_rn(a, b);
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
// The same by a value that is the same in all lanes.
template <profile P>
KVCTS_INLINE float div_uniform(float a, float b) {
  return div<P>(a, b);
}

// The same of two values by one in [1, 2], or NaN.
template <profile P>
KVCTS_INLINE void divide_both_by_one_to_two(float& a, float& b, float divisor) {
  a = div<P>(a, divisor);
  b = div<P>(b, divisor);
}

// e^x of x <= 0 or NaN.
template <profile P>
KVCTS_INLINE float exp_of_nonpositive(float x) {
  if constexpr (P == profile::ieee) {
    return x != x ? x : __uint_as_float(exp_of_minus(__float_as_uint(x) & 0x7FFFFFFFu));
  }
  float r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(__fmul_rn(x, 0x1.715476p+0f)));
  return r;
}

}  // namespace kvcts::device
