// MXFP4 codes of bf16 rows, two bf16 an instruction, where every number of the warp is finite. Four
// rows of words at once, called strips: a lane has 8 elements of each, a block of 32 is 4 lanes.
#pragma once

#include "optimized/warp/group_cuda.h"

namespace kvcts::device {

// bf16 bits: up to here a block's scale and half of its factor are ordinary numbers.
constexpr std::uint32_t packed_amax_limit = 0x7F40;  // 1.5 * 2^127
constexpr std::uint32_t packed_amax_floor = 0x01C0;  // 6 * 2^-126

// Of non-negative halves. As integers they order like the numbers, and NaN come last.
KVCTS_INLINE std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b) {
  return __vmaxu2(a, b);
}

// The largest magnitudes of two strips in the halves of a word, in all lanes of each block.
KVCTS_INLINE std::uint32_t packed_amax(const uint4& a, const uint4& b) {
  constexpr std::uint32_t magnitude = 0x7FFF7FFFu;
  const auto in_lane = [](const uint4& x) {
    return larger_halves(larger_halves(x.x & magnitude, x.y & magnitude),
                         larger_halves(x.z & magnitude, x.w & magnitude));
  };
  const std::uint32_t of_a = in_lane(a);
  const std::uint32_t of_b = in_lane(b);
  std::uint32_t m = larger_halves(__byte_perm(of_a, of_b, 0x5410), __byte_perm(of_a, of_b, 0x7632));
  m = larger_halves(m, __shfl_xor_sync(0xFFFFFFFFu, m, 1));
  return larger_halves(m, __shfl_xor_sync(0xFFFFFFFFu, m, 2));
}
// Whether any of the four blocks needs more than finite arithmetic.
KVCTS_INLINE bool beyond_packed(std::uint32_t amax01, std::uint32_t amax23) {
  // A half above the limit reaches its top bit, and no half the next one.
  constexpr std::uint32_t to_top = (0x8000u - (packed_amax_limit + 1)) * 0x10001u;
  return (((amax01 + to_top) | (amax23 + to_top)) & 0x80008000u) != 0;
}
// UE8M0 of both halves: mxfp4_scale of bf16_scales.h.
KVCTS_INLINE std::uint32_t packed_scales(std::uint32_t amax) {
  const std::uint32_t m = larger_halves(amax, packed_amax_floor * 0x10001u);
  return (((m + 0x003F003Fu) >> 7) & 0x01FF01FFu) - 0x00020002u;
}
// 2^(127 - scale) of both halves as bf16.
KVCTS_INLINE std::uint32_t packed_factors(std::uint32_t scales) {
  return (0x00FE00FEu - scales) << 7;
}

// A byte of ones for each of the four halves with a sign. prmt's selectors from 8 on repeat a
// byte's top bit.
KVCTS_INLINE std::uint32_t sign_bytes(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, 0xFDB9;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// Codes of a lane's 8 elements: group::encode_e2m1's three lines. None ends above 7, for the amax
// is at most 6 scales. `factor` has the factor in both halves.
KVCTS_INLINE std::uint32_t packed_codes(const uint4& x, std::uint32_t factor) {
  const std::uint32_t twice = factor + 0x00800080u;
  const std::uint32_t half = factor - 0x00800080u;
  const auto line = [&](std::uint32_t two) {
    const std::uint32_t m = abs2(two);  // folded; with packed_amax's it would take a register
    return min2(min2(fma2(m, twice, 0x43004300u), fma2(m, factor, 0x43024302u)),
                fma2(m, half, 0x43044304u));
  };
  // Of four: the signs fill their bytes, and a byte's low half is its code.
  const auto four = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t codes = __byte_perm(line(a), line(b), 0x6420);
    const std::uint32_t signs = sign_bytes(a, b);
    const std::uint32_t nibbles = codes | (signs & 0x08080808u);
    return nibbles | (nibbles >> 4);  // bytes 0 and 2 are whole
  };
  return __byte_perm(four(x.x, x.y), four(x.z, x.w), 0x6420);
}

}  // namespace kvcts::device
