// Conversions of f32 lanes to narrow codes, in integer and f32 operations that every target has.
#pragma once

#include <cstdint>

namespace kvcts::KVCTS_TARGET {

// 4-bit code of y. The codes count 0 .5 1 1.5 2 3 4 6, a concave curve of three lines, so that
// code = RNE(min(2y, y + 2, y/2 + 4, 7)), and rounding, being monotonic, may come before the
// minimum: adding 2^23 leaves the rounded line in the low bits, and a tie goes to the even code.
template <class G>
KVCTS_INLINE typename G::u32 e2m1_code(const typename G::f32& y) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const u32 magnitude = G::bits(y) & 0x7FFFFFFFu;
  const f32 m = G::as_f32(magnitude);
  const u32 line1 = G::bits(m + m + 8388608.0f);
  const u32 line2 = G::bits(m + 8388610.0f);
  const u32 line3 = G::bits(m * 0.5f + 8388612.0f);
  const u32 limit = G::splat(0x4B000007u);  // 2^23 + 7; infinities and NaN are above
  const u32 code = G::min(G::min(line1, line2), G::min(line3, limit)) & 7u;
  const u32 sign = (G::bits(y) >> 28) & 8u;
  return code | G::select(magnitude > 0x7F800000u, G::splat(0), sign);
}

// OCP code of y limited to +-448, NaN as +448.
template <class G>
KVCTS_INLINE typename G::u32 e4m3_code(const typename G::f32& y) {
  using u32 = typename G::u32;
  const u32 unlimited = G::bits(y) & 0x7FFFFFFFu;
  const u32 sign = (G::bits(y) >> 24) & 0x80u;
  const u32 magnitude = G::min(unlimited, G::splat(0x43E00000u));  // 448
  // From 2^-6 on: 20 mantissa bits fall away, ties to even; 960 = (127 - 7) << 3.
  const u32 normal = ((magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u)) >> 20) - 960u;
  // Below: units of 2^-9, the last place of 2^14.
  const u32 subnormal = G::bits(G::as_f32(magnitude) + 16384.0f) - 0x46800000u;
  const u32 code = G::select(magnitude < 0x3C800000u, subnormal, normal);
  return code | G::select(unlimited > 0x7F800000u, G::splat(0), sign);
}

// Four codes: -0 becomes 0.
template <class G>
KVCTS_INLINE typename G::u32 without_negative_zero(const typename G::u32& codes) {
  // A byte's high bit is set here where its magnitude is not 0.
  const typename G::u32 nonzero = (codes & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;
  return codes & (nonzero | 0x7F7F7F7Fu);
}

}  // namespace kvcts::KVCTS_TARGET
