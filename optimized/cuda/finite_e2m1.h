// MXFP4 codes of blocks without infinities and NaN.
#pragma once

#include "optimized/cuda/streams.h"
#include "optimized/warp/bf16_scales.h"

namespace kvcts::device {

// max2 that hands a NaN on.
KVCTS_INLINE std::uint32_t max2_or_nan(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// The bytes' signs, over whole bytes: those of the four halves of two words.
KVCTS_INLINE std::uint32_t signs_of_halves(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, 0xFDB9;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// a's bits where the mask has ones, b's elsewhere.
template <std::uint32_t Mask>
KVCTS_INLINE std::uint32_t select_bits(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(r) : "r"(a), "r"(b), "n"(Mask));
  return r;
}

// In both halves of a word the amax of a block of 4 lanes, or what is above all numbers.
KVCTS_INLINE std::uint32_t mxfp4_amax_or_nan(const group::bf16x8& x) {
  std::uint32_t m =
      max2_or_nan(max2_or_nan(abs2(x.w[0]), abs2(x.w[1])), max2_or_nan(abs2(x.w[2]), abs2(x.w[3])));
  m = max2_or_nan(m, mxfp4_amax_floor * 0x10001u);
  m = max2_or_nan(m, group::shuffle_xor<1>(m));
  m = max2_or_nan(m, group::shuffle_xor<2>(m));
  return max2_or_nan(m, __byte_perm(m, 0, 0x1032));
}
KVCTS_INLINE bool is_number(std::uint32_t amax) { return amax < 0x7F800000u; }

// What the exponent of the scale has in both halves of a word, above 7 zeros: 2 more than its byte.
KVCTS_INLINE std::uint32_t mxfp4_fields(std::uint32_t amax) {
  return (amax + 0x003F003Fu) & 0xFF80FF80u;
}
// The bytes of two scales, in the low half and the high.
KVCTS_INLINE std::uint32_t mxfp4_scale_bytes(std::uint32_t fields_low, std::uint32_t fields_high) {
  return (__byte_perm(fields_low, fields_high, 0x5410) >> 7) - 0x00020002u;
}

// Codes of a finite block. The magnitudes y count 0 .5 1 1.5 2 3 4 6: 252 + 2y counts on in the low
// bits up to 4, since the last place doubles at 256, and 256 + y from there. The block's scale
// keeps y up to 6.
KVCTS_INLINE std::uint32_t encode_finite_e2m1(const group::bf16x8& x, std::uint32_t fields) {
#ifdef KVCTS_E2M1_INSTRUCTION
  return group::encode_e2m1(x, group::as_f32(0x80000000u - (fields << 16)));
#else
  const std::uint32_t factor = 0x80008000u - fields;   // 2^(127 - scale), two bf16
  const std::uint32_t doubled = 0x80808080u - fields;  // twice that
  std::uint32_t codes[4];
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    const std::uint32_t m = abs2(x.w[j]);
    codes[j] = min2(fma2(m, doubled, 0x437C437Cu), fma2(m, factor, 0x43804380u));
  }
  std::uint32_t nibbles[2];
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    const std::uint32_t code_bytes = __byte_perm(codes[2 * i], codes[2 * i + 1], 0x6420);
    const std::uint32_t sign_bytes = signs_of_halves(x.w[2 * i], x.w[2 * i + 1]);
    const std::uint32_t four = select_bits<0x07070707u>(code_bytes, sign_bytes);
    nibbles[i] = select_bits<0x0F0F0F0Fu>(four, four >> 4);  // bytes 0 and 2 are whole
  }
  return __byte_perm(nibbles[0], nibbles[1], 0x6420) ^ 0x44444444u;  // 252 ends in 0x7C
#endif
}

}  // namespace kvcts::device
