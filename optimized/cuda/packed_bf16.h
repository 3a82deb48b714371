// Two bf16 at once, for kernels of the device alone: what of a row is bf16 stays packed, which
// takes half the instructions of f32.
#pragma once

#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/rope.h"

namespace kvcts::device {

using words4 = group::words<4>;  // 8 bf16

KVCTS_INLINE words4 load_16_bytes(const byte* from) {
  const uint4 x = load_global(reinterpret_cast<const uint4*>(from));
  return {{x.x, x.y, x.z, x.w}};
}
KVCTS_INLINE void store_8_bytes(byte* to, std::uint32_t lo, std::uint32_t hi) {
  *reinterpret_cast<uint2*>(to) = make_uint2(lo, hi);
}
KVCTS_INLINE void store_4_bytes(byte* to, std::uint32_t x) {
  *reinterpret_cast<std::uint32_t*>(to) = x;
}

KVCTS_INLINE std::uint32_t mul2(std::uint32_t a, std::uint32_t b) {
  return fma2(a, b, 0x80008000u);  // adding -0 keeps the product's sign
}

// The store form's rotation by the angle 0, rounded to bf16: a - b * 0 and b + a * 0, which may
// turn a -0 into 0 and spread a NaN.
KVCTS_INLINE words4 rotated_by_zero(const words4& x) {
  words4 r;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    r.w[j] = fma2(__byte_perm(x.w[j], 0, 0x1032), 0x00008000u, x.w[j]);
  }
  return r;
}

KVCTS_INLINE std::uint32_t magnitudes(const words4& x) {
  return max2(max2(abs2(x.w[0]), abs2(x.w[1])), max2(abs2(x.w[2]), abs2(x.w[3])));
}
// The largest over blocks of Lanes lanes of each of two pairs, the first one's in the low half; NaN
// is ignored.
template <int Lanes>
KVCTS_INLINE std::uint32_t largest_of_two(std::uint32_t first, std::uint32_t second,
                                          std::uint32_t floor) {
  std::uint32_t m = max2(__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632));
  m = max2(m, floor * 0x10001u);
  m = max2(m, group::shuffle_xor<1>(m));
  if constexpr (Lanes >= 4) m = max2(m, group::shuffle_xor<2>(m));
  if constexpr (Lanes >= 8) m = max2(m, group::shuffle_xor<4>(m));
  return m;
}

// key_scale and key_factor (bf16_scales.h) of two blocks, a half of a word each.
struct two_scales {
  std::uint32_t scales;
  std::uint32_t factors;  // bf16
};
KVCTS_INLINE two_scales key_scales(std::uint32_t amax) {
  const std::uint32_t scales = (((amax + 0x001F001Fu) >> 7) & 0x00FF00FFu) - 0x00080008u;
  const std::uint32_t infinite = ((amax + 0x00800080u) >> 15) & 0x00010001u;
  const std::uint32_t factors = (0x00FE00FEu - scales) << 7;
  return {scales + infinite * 8, factors & ~(infinite * 0xFFFFu)};
}

// E4M3 codes of x * factor, NaN as 0x7F, or limited to 448 with NaN as that; the factor, a power of
// two or 0, twice in a word. The product is exact where it is not far below the smallest code.
template <bool Clamped>
KVCTS_INLINE uint2 e4m3_codes(const words4& x, std::uint32_t factor) {
  words4 y;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    y.w[j] = mul2(x.w[j], factor);
    if constexpr (Clamped) y.w[j] = min2(y.w[j], 0x43E043E0u);
  }
  float v[8];
  unpack<group>(y, v);
  constexpr e4m3_form form = e4m3_form::unclamped;
  return make_uint2(e4m3_word<group, form>(v[0], v[1], v[2], v[3]),
                    e4m3_word<group, form>(v[4], v[5], v[6], v[7]));
}

// Cosines and sines of pairs [4 * eighth, 4 * eighth + 4) of a table row of 64 dims.
KVCTS_INLINE angles<group> load_angles_of_eighth(const byte* row, std::uint32_t eighth,
                                                 bool is_f32) {
  angles<group> r;
  if (is_f32) {
    const words4 c = load_16_bytes(row + eighth * 16);
    const words4 s = load_16_bytes(row + eighth * 16 + 128);
    KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
      r.c[i] = __uint_as_float(c.w[i]);
      r.s[i] = __uint_as_float(s.w[i]);
    }
  } else {
    const uint2 c = load_global(reinterpret_cast<const uint2*>(row + eighth * 8));
    const uint2 s = load_global(reinterpret_cast<const uint2*>(row + eighth * 8 + 64));
    const std::uint32_t cosines[2] = {c.x, c.y};
    const std::uint32_t sines[2] = {s.x, s.y};
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      r.c[2 * i] = bf16_even<group>(cosines[i]);
      r.c[2 * i + 1] = bf16_odd<group>(cosines[i]);
      r.s[2 * i] = bf16_even<group>(sines[i]);
      r.s[2 * i + 1] = bf16_odd<group>(sines[i]);
    }
  }
  return r;
}

KVCTS_INLINE byte* pointer_of_lane(byte* p, int lane) {
  return reinterpret_cast<byte*>(
      __shfl_sync(0xFFFFFFFFu, reinterpret_cast<unsigned long long>(p), lane));
}

}  // namespace kvcts::device
