// MXFP8 and NVFP4 codes of latents without infinities and NaN, 16 dims a lane, packed where nothing
// rotates.
#pragma once

#include "optimized/cuda/finite_e2m1.h"
#include "optimized/cuda/packed_bf16.h"
#include "optimized/kernels/rope_quant_insert.h"

namespace kvcts::device {

struct lane_dims {
  std::uint32_t w[8];
};

// The largest and the smallest of the low halves and of the high ones, all positive. A NaN is the
// largest.
KVCTS_INLINE std::uint32_t largest_pair(const lane_dims& m) {
  std::uint32_t r = max2_or_nan(m.w[0], m.w[1]);
  KVCTS_UNROLL for (int j = 2; j < 8; ++j) r = max2_or_nan(r, m.w[j]);
  return r;
}
KVCTS_INLINE std::uint32_t smallest_pair(const lane_dims& m) {
  std::uint32_t r = min2(m.w[0], m.w[1]);
  KVCTS_UNROLL for (int j = 2; j < 8; ++j) r = min2(r, m.w[j]);
  return r;
}

KVCTS_INLINE float reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// The E4M3 scale of an NVFP4 block, and its number d. An infinity becomes 448.
KVCTS_INLINE std::uint32_t nvfp4_scale(float amax, float& d) {
  const float t = fmaxf(amax * 0x1.555556p-3f, 0x1p-9f);
#ifdef KVCTS_E4M3_INSTRUCTION
  const std::uint32_t scale = e4m3x2(t, 0.0f);
  float zero;
  e4m3x2_numbers(scale, d, zero);
#else
  const std::uint32_t scale = e4m3_code<group>(t);
  d = __uint_as_float(scale << 20) * 0x1p120f;
#endif
  return scale;
}

// Signs, over whole bytes, of a's low half, b's low half, a's high half, b's high half.
KVCTS_INLINE std::uint32_t signs_of_pairs(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, 0xFBD9;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// Those of a and b, over bytes 0 and 1.
KVCTS_INLINE std::uint32_t signs_of_words(float a, float b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, 0xFBFB;" : "=r"(r) : "r"(__float_as_uint(a)), "r"(__float_as_uint(b)));
  return r;
}

// E2M1 codes of x / d, m = |x|, with 1/d in two bf16. A rounding boundary times d has at most 7
// significant bits, so that x is on it or at least a bf16 ulp away: the quotient, rounded to bf16,
// is on the same side, and on the boundary where x is. The numbers count 0 .5 1 1.5 2 3 4 6:
// 252 + 2y counts on in its last bits up to 4, since the last place doubles at 256, 256 + y from
// there on, and 262 is the last.
KVCTS_INLINE uint2 nvfp4_codes_of_pairs(const lane_dims& x, const lane_dims& m, float d) {
  const float inverse = reciprocal(d);
  const std::uint32_t high = group::pack_bf16(inverse, inverse);
  const float rest = inverse - __uint_as_float(high & 0xFFFF0000u);
  const std::uint32_t low = group::pack_bf16(rest, rest);
  std::uint32_t out[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    std::uint32_t nibbles[2];
    KVCTS_UNROLL for (int two = 0; two < 2; ++two) {
      const int at = half * 4 + two * 2;
      std::uint32_t codes[2];
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const std::uint32_t y = fma2(m.w[at + i], high, mul2(m.w[at + i], low));
        const std::uint32_t line1 = fma2(y, 0x40004000u, 0x437C437Cu);
        const std::uint32_t line2 = fma2(y, 0x3F803F80u, 0x43804380u);
        codes[i] = min2(min2(line1, line2), 0x43834383u);
      }
      nibbles[two] = select_bits<0x07070707u>(__byte_perm(codes[0], codes[1], 0x6240),
                                              signs_of_pairs(x.w[at], x.w[at + 1]));
    }
    const std::uint32_t even = __byte_perm(nibbles[0], nibbles[1], 0x5410);
    const std::uint32_t odd = __byte_perm(nibbles[0], nibbles[1], 0x7632);
    out[half] = select_bits<0x0F0F0F0Fu>(even, odd * 16) ^ 0x44444444u;  // 252 ends in 0x7C
  }
  return make_uint2(out[0], out[1]);
}

// nvfp4_codes of any f32, the rounding lines of nvfp4_codes_of_pairs around 2^23: infinities and
// NaN, which is positive, end at 7.
KVCTS_INLINE void nvfp4_codes_of_turned(const float (&x)[8], std::uint32_t& scale,
                                        std::uint32_t& codes) {
  float d;
  scale = nvfp4_scale(block_amax<group, 2>(x, 0.0f), d);
  const float inverse = reciprocal(d);
  const float rest = __fmaf_rn(-d, inverse, 1.0f) * inverse;
  std::uint32_t sum = 0u - 0x4AFFFFFCu * 0x11111111u;
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) {
    const float y = fabsf(nvfp4_quotient<group>(x[j], inverse, rest));
    const float line1 = y + 8388606.0f;
    const float line2 = __fmaf_rn(y, 0.5f, 8388608.0f);
    sum += __float_as_uint(fminf(fminf(line1, line2), 8388611.0f)) << (4 * j);
  }
  const std::uint32_t even =
      __byte_perm(signs_of_words(x[0], x[2]), signs_of_words(x[4], x[6]), 0x5410);
  const std::uint32_t odd =
      __byte_perm(signs_of_words(x[1], x[3]), signs_of_words(x[5], x[7]), 0x5410);
  codes = sum | (select_bits<0x0F0F0F0Fu>(even, odd) & 0x88888888u);
}

// What of a latent does not rotate, 16 dims a lane in the lower 28 lanes; lane_dims of the other
// four are looked at only. False, and nothing is stored, where not all are finite. Codes are
// streamed (__stcs): nothing reads them soon.
template <latent_record Record>
KVCTS_INLINE bool store_finite_latent(byte* data, byte* scales, lane_dims x) {
  const std::uint32_t lane = group::lane();
  lane_dims m;
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) m.w[j] = abs2(x.w[j]);
  std::uint32_t amax = largest_pair(m);
  amax = max2_or_nan(amax, __byte_perm(amax, 0, 0x1032));
  // All the rotation by zero changes in finite numbers is the sign of a zero.
  const bool zero = ((smallest_pair(m) - 0x00010001u) & 0x80008000u) != 0;
  const bool finite = amax < 0x7F800000u;
  if (__any_sync(0xFFFFFFFFu, zero || !finite)) {
    if (!__all_sync(0xFFFFFFFFu, finite)) return false;
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) {
      x.w[j] = fma2(__byte_perm(x.w[j], 0, 0x1032), 0x00008000u, x.w[j]);
    }
  }
  const bool still = lane < 28;
  if constexpr (Record == latent_record::v41_nvfp4) {
    float d;
    const std::uint32_t scale = nvfp4_scale(__uint_as_float(amax << 16), d);
    const uint2 codes = nvfp4_codes_of_pairs(x, m, d);
    if (still) {
      __stcs(reinterpret_cast<uint2*>(data + lane * 8), codes);
      scales[lane] = static_cast<byte>(scale);
    }
  } else {
    amax = max2(amax, key_amax_floor * 0x10001u);
    amax = max2(amax, group::shuffle_xor<1>(amax));
    const two_scales two = key_scales(amax);
    const uint2 lo = e4m3_codes<false>({{x.w[0], x.w[1], x.w[2], x.w[3]}}, two.factors);
    const uint2 hi = e4m3_codes<false>({{x.w[4], x.w[5], x.w[6], x.w[7]}}, two.factors);
    if (still) {
      __stcs(reinterpret_cast<uint4*>(data + lane * 16), make_uint4(lo.x, lo.y, hi.x, hi.y));
      if (lane % 2 == 0) scales[lane / 2] = static_cast<byte>(two.scales);
    }
  }
  return true;
}

}  // namespace kvcts::device
