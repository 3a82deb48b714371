// RN(a * b + c) of vectors on the CPU, where the target has the instruction and where it has not.
#pragma once

#if KVCTS_VECTOR_BYTES == 16 && defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvcts::KVCTS_TARGET {

#if KVCTS_VECTOR_BYTES == 16 && !defined(__FP_FAST_FMAF)
typedef double vec_f64 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));

#if defined(__SSE2__)
KVCTS_INLINE vec_f64 lower_as_f64(const vec_f32& x) { return (vec_f64)_mm_cvtps_pd((__m128)x); }
KVCTS_INLINE vec_f64 upper_as_f64(const vec_f32& x) {
  return (vec_f64)_mm_cvtps_pd(_mm_movehl_ps((__m128)x, (__m128)x));
}
KVCTS_INLINE vec_f32 rounded_to_f32(const vec_f64& lower, const vec_f64& upper) {
  return (vec_f32)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)lower), _mm_cvtpd_ps((__m128d)upper));
}
#else
KVCTS_INLINE vec_f64 lower_as_f64(const vec_f32& x) { return vec_f64{x[0], x[1]}; }
KVCTS_INLINE vec_f64 upper_as_f64(const vec_f32& x) { return vec_f64{x[2], x[3]}; }
KVCTS_INLINE vec_f32 rounded_to_f32(const vec_f64& lower, const vec_f64& upper) {
  return vec_f32{static_cast<float>(lower[0]), static_cast<float>(lower[1]),
                 static_cast<float>(upper[0]), static_cast<float>(upper[1])};
}
#endif

// The product of two f32 is exact. The sum is rounded to odd: towards 0, and its last bit set where
// that was inexact. With 29 bits more than an f32 it then rounds to f32 as the exact sum would.
KVCTS_INLINE vec_f64 product_plus(const vec_f64& product, const vec_f64& c) {
  const vec_f64 sum = product + c;
  const vec_f64 of_c = sum - product;
  const vec_f64 missing = (product - (sum - of_c)) + (c - of_c);  // exact; NaN by an infinity
  const vec_u64 inexact = (vec_u64)((missing < 0.0) | (missing > 0.0)) & 1;
  const vec_u64 away = ((vec_u64)missing ^ (vec_u64)sum) >> 63;  // rounded away from 0
  return (vec_f64)(((vec_u64)sum - (inexact & away)) | inexact);
}
#endif

KVCTS_INLINE vec_f32 fma_of(const vec_f32& a, const vec_f32& b, const vec_f32& c) {
#if KVCTS_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (vec_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif KVCTS_VECTOR_BYTES == 32 && defined(__FMA__)
  return (vec_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif KVCTS_VECTOR_BYTES == 16 && !defined(__FP_FAST_FMAF)
  return rounded_to_f32(product_plus(lower_as_f64(a) * lower_as_f64(b), lower_as_f64(c)),
                        product_plus(upper_as_f64(a) * upper_as_f64(b), upper_as_f64(c)));
#else
  vec_f32 r;
  for (int i = 0; i < vector_lanes; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

}  // namespace kvcts::KVCTS_TARGET
