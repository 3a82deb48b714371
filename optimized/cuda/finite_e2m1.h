// MXFP4 of blocks without infinities and NaN: a block of 32 bf16 is 4 lanes, 8 a lane. What is one
// value a block goes two to a word, which takes half the instructions and shuffles.
#pragma once

#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/group_cuda.h"

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
KVCTS_INLINE std::uint32_t low_twice(std::uint32_t x) { return __byte_perm(x, 0, 0x1010); }
KVCTS_INLINE std::uint32_t high_twice(std::uint32_t x) { return __byte_perm(x, 0, 0x3232); }

// The amax of a block of a, low, and of one of b, high; what is above all numbers where one has an
// infinity or NaN.
KVCTS_INLINE std::uint32_t mxfp4_amax_of_two(const group::bf16x8& a, const group::bf16x8& b) {
  // Not abs2, whose words would stay for the codes: that takes 16 registers more in mxfp4_q_quant.
  constexpr std::uint32_t magnitude = 0x7FFF7FFFu;
  const auto in_lane = [](const group::bf16x8& x) {
    return max2_or_nan(max2_or_nan(x.w[0] & magnitude, x.w[1] & magnitude),
                       max2_or_nan(x.w[2] & magnitude, x.w[3] & magnitude));
  };
  const std::uint32_t of_a = in_lane(a);
  const std::uint32_t of_b = in_lane(b);
  std::uint32_t m = max2_or_nan(__byte_perm(of_a, of_b, 0x5410), __byte_perm(of_a, of_b, 0x7632));
  m = max2_or_nan(m, mxfp4_amax_floor * 0x10001u);
  m = max2_or_nan(m, group::shuffle_xor<1>(m));
  return max2_or_nan(m, group::shuffle_xor<2>(m));
}
// 0x8000 in the halves where no number stands, 0 in others; signs are off.
KVCTS_INLINE std::uint32_t not_finite(std::uint32_t amax) {
  return (amax + 0x00800080u) & 0x80008000u;
}

// Of finite blocks, a half each: the exponent of amax/6 above 7 zeros, 2 more than the scale's byte
// (mxfp4_scale of bf16_scales.h); that byte; 2^(127 - byte), a bf16 from 2^-126 to 2^126.
KVCTS_INLINE std::uint32_t mxfp4_fields(std::uint32_t amax) {
  return (amax + 0x003F003Fu) & 0xFF80FF80u;
}
KVCTS_INLINE std::uint32_t mxfp4_scale_bytes(std::uint32_t fields) {
  return (fields >> 7) - 0x00020002u;
}
KVCTS_INLINE std::uint32_t mxfp4_factors(std::uint32_t fields) { return 0x80008000u - fields; }

// Codes of a finite block; both halves of `factor` have its factor. The magnitudes y count 0 .5 1
// 1.5 2 3 4 6: 252 + 2y counts on in the low bits up to 4, since the last place doubles at 256, and
// 256 + y from there. The block's scale keeps y up to 6.
KVCTS_INLINE std::uint32_t encode_finite_e2m1_by(const group::bf16x8& x, std::uint32_t factor) {
#ifdef KVCTS_E2M1_INSTRUCTION
  return group::encode_e2m1(x, group::as_f32(factor & 0xFFFF0000u));
#else
  const std::uint32_t doubled = factor + 0x00800080u;
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
