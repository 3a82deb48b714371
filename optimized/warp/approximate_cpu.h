// rsqrt and division of both profiles on the CPU, by the coefficients that were measured on the
// device (data shared with the oracle; the arithmetic is this file's own).
#pragma once

#include "optimized/warp/exp.h"
#include "reference/numerics/mufu_tables.h"
#include "reference/numerics/rules.h"  // the profile's name only

namespace kvcts::KVCTS_TARGET {

KVCTS_INLINE std::uint32_t bits_of_f32(float x) {
  std::uint32_t r;
  __builtin_memcpy(&r, &x, 4);
  return r;
}
KVCTS_INLINE float f32_of_bits(std::uint32_t x) {
  float r;
  __builtin_memcpy(&r, &x, 4);
  return r;
}

// C0 - C1 x + C2 S(x) of a 17-bit x in the segment, as the bits of a number in [0.5, 1]: S is the
// hardware's square, which drops most of the products with the low 9 bits.
KVCTS_INLINE std::uint32_t falling_quadratic(const mufu_segment& c, std::uint32_t x,
                                             std::uint32_t bias) {
  const std::uint32_t top = x >> 9;
  std::uint32_t square = top * top >> 1;
  for (int bit = 2; bit <= 8; ++bit) square += (0u - (x >> bit & 1u)) & (x >> (18 - bit));
  const std::uint64_t t = (static_cast<std::uint64_t>(c.c0) << 14) + bias -
                          static_cast<std::uint64_t>(c.c1) * x +
                          (static_cast<std::uint64_t>(c.c2) * square << 1);
  return 0x3E800000u + static_cast<std::uint32_t>(t >> 16);
}

template <profile P>
KVCTS_INLINE float rsqrt(float x) {
  if constexpr (P == profile::ieee) {
    return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
  }
  const std::uint32_t b = bits_of_f32(x);
  const std::uint32_t magnitude = b & 0x7FFFFFFFu;
  if (magnitude < 0x00800000u) return f32_of_bits((b & 0x80000000u) | 0x7F800000u);
  if (b == 0x7F800000u) return 0.0f;
  if (b > 0x7F800000u) return f32_of_bits(0x7FFFFFFFu);  // NaN or negative
  // x = 4^half * y, y in [1, 4)
  const int half = (static_cast<int>(b >> 23) - 127) >> 1;
  const std::uint32_t i = b - 0x3F800000u - (static_cast<std::uint32_t>(half) << 24);
  const std::uint32_t root =
      i == 0 ? 0x3F800000u : falling_quadratic(rsqrt_segments[i >> 17], i & 0x1FFFFu, 16383);
  return f32_of_bits(root - (static_cast<std::uint32_t>(half) << 23));
}

// RN(a * b + c) and RN(a / b) of scalars.
KVCTS_INLINE float fma_scalar(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
KVCTS_INLINE float true_div_scalar(float a, float b) { return a / b; }

// rcp.approx.ftz
KVCTS_INLINE float approximate_reciprocal(float x) {
  const std::uint32_t b = bits_of_f32(x);
  const std::uint32_t sign = b & 0x80000000u;
  const std::uint32_t magnitude = b ^ sign;
  if (magnitude > 0x7F800000u) return f32_of_bits(0x7FFFFFFFu);
  if (magnitude == 0x7F800000u) return f32_of_bits(sign);
  if (magnitude < 0x00800000u) return f32_of_bits(sign | 0x7F800000u);
  const std::uint32_t y =
      falling_quadratic(rcp_segments[magnitude >> 16 & 0x7Fu], (magnitude & 0xFFFFu) << 1, 4046);
  const std::int32_t r = static_cast<std::int32_t>(y) -
                         static_cast<std::int32_t>((magnitude & 0x7F800000u) - 0x3F800000u);
  return f32_of_bits(r < 0x00800000 ? sign : sign | static_cast<std::uint32_t>(r));
}

// The source's plain division by a value that is the same in all lanes.
template <profile P>
KVCTS_INLINE lane_f32 div_uniform(const lane_f32& a, const lane_f32& b) {
  if constexpr (P == profile::ieee) return a / b;
  const float divisor = b.v[0][0];
  const float magnitude = divisor < 0 ? -divisor : divisor;
  float scale = 1.0f;  // which keeps the reciprocal normal
  if (magnitude > 0x1p126f && magnitude <= 0x1.FFFFFEp127f) scale = 0.25f;
  if (magnitude < 0x1p-126f) scale = 0x1p24f;
  return a * scale * approximate_reciprocal(divisor * scale);
}

// The coefficients of N segments as words: vectors of look-ups need them so.
template <int N>
struct segment_words {
  std::int32_t c0[N];
  std::int32_t c1[N];
  std::int32_t c2[N];
};
template <int N>
constexpr segment_words<N> words_of(const mufu_segment (&segments)[N]) {
  segment_words<N> r = {};
  for (int i = 0; i < N; ++i) {
    r.c0[i] = static_cast<std::int32_t>(segments[i].c0);
    r.c1[i] = segments[i].c1;
    r.c2[i] = segments[i].c2;
  }
  return r;
}
static constexpr segment_words<64> ex2_words = words_of(ex2_segments);
static constexpr segment_words<128> rcp_words = words_of(rcp_segments);

KVCTS_INLINE vec_i32 look_up(const std::int32_t* table, const vec_i32& at) {
#if KVCTS_VECTOR_BYTES == 64
  // The masked form: the other one leaves g++ 12 with an uninitialized variable.
  return (vec_i32)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xFFFF, (__m512i)at, table,
                                              4);
#elif KVCTS_VECTOR_BYTES == 32
  return (vec_i32)_mm256_i32gather_epi32(table, (__m256i)at, 4);
#else
  vec_i32 r;
  for (int i = 0; i < vector_lanes; ++i) r[i] = table[at[i]];
  return r;
#endif
}

// The hardware's square of a 17-bit x.
KVCTS_INLINE vec_i32 truncated_square(const vec_i32& x) {
  vec_i32 square = ((x >> 9) * (x >> 9)) >> 1;
  KVCTS_UNROLL for (int bit = 2; bit <= 8; ++bit) {
    square += -((x >> bit) & 1) & (x >> (18 - bit));
  }
  return square;
}

// ex2.approx of RN(x * log2 e), x <= 0 or NaN; below -126 the square of its half's. Not inlined:
// long.
[[maybe_unused]] static __attribute__((noinline)) lane_f32 exp_nvidia(const lane_f32& x) {
  lane_f32 r;
  KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
    const vec_f32 y = x.v[i] * 0x1.715476p+0f;
    const vec_i32 below = y < -126.0f;
    const vec_f32 size = below ? y * -0.5f : -y;
    const vec_f32 limited = size < 128.0f ? size : vec_f32{} + 128.0f;  // of a NaN too
    const vec_i32 g = __builtin_convertvector(limited * 0x1p23f, vec_i32);
    const vec_i32 v = (g & 0x7FFFFF) == 0 ? -g : ~g;
    const vec_i32 at = v & 0x1FFFF;
    const vec_i32 segment = (v >> 17) & 63;
    const vec_i32 c0 = look_up(ex2_words.c0, segment);
    const vec_i32 c1 = look_up(ex2_words.c1, segment);
    const vec_i32 c2 = look_up(ex2_words.c2, segment);
    // (c0 2^13 + 6114 + c1 at + c2 S(at)) >> 15, with the lowest two bits of c0 and `at` apart so
    // that 32 bits suffice.
    const vec_i32 low = (c0 & 3) * 0x2000 + 6114 + c1 * (at & 3) + c2 * truncated_square(at);
    const vec_i32 significand = (c0 >> 2) + ((c1 * (at >> 2) + (low >> 2)) >> 13);
    const vec_i32 bits = ((v >> 23) + 126) * 0x800000 + significand;
    const vec_f32 power = (vec_f32)(bits < 0x00800000 ? vec_i32{} : bits);
    const vec_f32 result = below ? power * power : power;
    r.v[i] = y == y ? result : y;
  }
  return r;
}

// rcp.approx of b in [1, 2], or NaN.
[[maybe_unused]] static __attribute__((noinline)) lane_f32 reciprocal_nvidia(const lane_f32& b) {
  lane_f32 r;
  KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
    const vec_i32 bits = (vec_i32)b.v[i];
    const vec_i32 at = (bits & 0xFFFF) << 1;
    const vec_i32 segment = (bits >> 16) & 0x7F;
    const vec_i32 c0 = look_up(rcp_words.c0, segment);
    const vec_i32 c1 = look_up(rcp_words.c1, segment);
    const vec_i32 c2 = look_up(rcp_words.c2, segment);
    // (c0 2^14 + 4046 - c1 at + 2 c2 S(at)) >> 16, in 32 bits as above.
    const vec_i32 low = (c0 & 3) * 0x4000 + 4046 - c1 * (at & 3) + c2 * truncated_square(at) * 2;
    const vec_i32 base = (c0 >> 2) + (((low >> 2) - c1 * (at >> 2)) >> 14) + 0x3E800000;
    const vec_i32 exponent = (bits & 0x7F800000) - 0x3F800000;
    r.v[i] = b.v[i] == b.v[i] ? (vec_f32)(base - exponent) : b.v[i];
  }
  return r;
}

// e^x of x <= 0 or NaN.
[[maybe_unused]] static __attribute__((noinline)) lane_f32 exp_ieee(const lane_f32& x) {
  lane_f32 r;
  for (int i = 0; i < group_lanes; ++i) {
    const float value = x.v[i / vector_lanes][i % vector_lanes];
    r.v[i / vector_lanes][i % vector_lanes] =
        value != value ? value : f32_of_bits(exp_of_minus(bits_of_f32(value) & 0x7FFFFFFFu));
  }
  return r;
}

template <profile P>
KVCTS_INLINE lane_f32 exp_of_nonpositive(const lane_f32& x) {
  return P == profile::nvidia ? exp_nvidia(x) : exp_ieee(x);
}

// The source's plain division of two values by one in [1, 2], or NaN.
template <profile P>
KVCTS_INLINE void divide_both_by_one_to_two(lane_f32& a, lane_f32& b, const lane_f32& divisor) {
  if constexpr (P == profile::ieee) {
    a = a / divisor;
    b = b / divisor;
  } else {
    const lane_f32 reciprocal = reciprocal_nvidia(divisor);
    a = a * reciprocal;
    b = b * reciprocal;
  }
}

}  // namespace kvcts::KVCTS_TARGET
