// Rows of 64 dims that 8 lanes share, 8 dims (16 bytes of bf16) a lane; four rows a warp.
#pragma once

#include "optimized/cuda/packed_bf16.h"
#include "optimized/warp/rope.h"

namespace kvcts::device {

constexpr std::uint32_t row_lanes = 8;
KVCTS_INLINE std::uint32_t lane_in_row() { return threadIdx.x & 7u; }
KVCTS_INLINE std::uint32_t row_in_warp() { return (threadIdx.x & 31u) / row_lanes; }

KVCTS_INLINE group::bf16x8 words_of(const uint4& x) { return {{x.x, x.y, x.z, x.w}}; }

// Loads in the order of the source, of 16, 8, 4 or 2 bytes.
KVCTS_INLINE uint4 load_in_order(const uint4* from) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from)
               : "memory");
  return x;
}
KVCTS_INLINE uint2 load_in_order(const uint2* from) {
  uint2 x;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(from) : "memory");
  return x;
}
KVCTS_INLINE std::uint32_t load_in_order(const std::uint32_t* from) {
  std::uint32_t x;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
  return x;
}
KVCTS_INLINE std::uint32_t load_in_order(const std::uint16_t* from) {
  std::uint16_t x;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(x) : "l"(from) : "memory");
  return x;
}

// 8 bf16 that no one reads again. Queries are faster past the L1 cache; outputs, whose warps take
// four tokens at a time, are not (0.87 against 0.98 of a copy).
KVCTS_INLINE group::bf16x8 load_past_l1_in_order(const unsigned char* from) {
  group::bf16x8 x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3])
               : "l"(from)
               : "memory");
  return x;
}

// A position, behind the loads that do not wait for it: the compiler would let some of those wait
// too, but moves none across a barrier. All of a block's warps that are left call this.
KVCTS_INLINE std::int64_t load_after_all(const std::int64_t* from) {
  __syncthreads();
  std::int64_t x;
  asm volatile("ld.global.s64 %0, [%1];" : "=l"(x) : "l"(from) : "memory");
  return x;
}

template <class Words>
KVCTS_INLINE void store_codes(unsigned char* to, const Words& x) {
  *reinterpret_cast<Words*>(to) = x;
}

// A lane's four cosines and sines as the table has them.
KVCTS_INLINE angles<group> angles_of_f32(const uint4& c, const uint4& s) {
  using G = group;
  return {{G::as_f32(c.x), G::as_f32(c.y), G::as_f32(c.z), G::as_f32(c.w)},
          {G::as_f32(s.x), G::as_f32(s.y), G::as_f32(s.z), G::as_f32(s.w)}};
}
KVCTS_INLINE angles<group> angles_of_bf16(const uint2& c, const uint2& s) {
  using G = group;
  return {{bf16_even<G>(c.x), bf16_odd<G>(c.x), bf16_even<G>(c.y), bf16_odd<G>(c.y)},
          {bf16_even<G>(s.x), bf16_odd<G>(s.x), bf16_even<G>(s.y), bf16_odd<G>(s.y)}};
}
// The row of the table whose 32 cosines and 32 sines turn the lane's 64 dims; 16-byte aligned.
KVCTS_INLINE angles<group> load_angles_of_row(const unsigned char* row, bool is_f32) {
  if (is_f32) {
    const uint4* four = reinterpret_cast<const uint4*>(row) + lane_in_row();
    const uint4 c = load_in_order(four);
    return angles_of_f32(c, load_in_order(four + row_lanes));
  }
  const uint2* two = reinterpret_cast<const uint2*>(row) + lane_in_row();
  const uint2 c = load_in_order(two);
  return angles_of_bf16(c, load_in_order(two + row_lanes));
}

// The largest |x| of a lane in each half of a word; a number, at least `so_far`.
KVCTS_INLINE std::uint32_t larger_halves(const group::bf16x8& x, std::uint32_t so_far) {
  const std::uint32_t m = max2(max2(abs2(x.w[0]), abs2(x.w[1])), max2(abs2(x.w[2]), abs2(x.w[3])));
  return max2(m, so_far);
}
// Both halves, over the 8 lanes of a row: the row's.
KVCTS_INLINE std::uint32_t largest_of_row(std::uint32_t m) {
  m = max2(m, group::shuffle_xor<1>(m));
  m = max2(m, group::shuffle_xor<2>(m));
  m = max2(m, group::shuffle_xor<4>(m));
  return max2(m, __byte_perm(m, 0, 0x1032));
}

// key_scale and key_factor of an amax that lies in both halves of a word. The factor, a power of
// two or 0, comes as two bf16.
struct e4m3_scale {
  std::uint32_t biased;
  std::uint32_t factor;
};
KVCTS_INLINE e4m3_scale e4m3_scale_of(std::uint32_t amax) {
  const std::uint32_t fields = (amax + 0x001F001Fu) & 0xFF80FF80u;
  const bool infinite = amax > 0x7F7FFFFFu;
  // 8 less than the field; and 254 less that.
  return {infinite ? 255u : ((fields >> 7) & 0xFFu) - 8u, infinite ? 0u : 0x83008300u - fields};
}

}  // namespace kvcts::device
