// Scales of blocks of bf16 values. An amax is then the upper half of an f32, and each form of the
// quotient that a scale comes from gives the same exponent (docs/numerics.md).
#pragma once

#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

// UE8M0 byte of an MXFP4 block whose amax has the bits f * 2^e, floored at 6 * 2^-126: the exponent
// of amax/6 is e - 2 up to f = 1.5 and e - 1 above. Infinity has the highest byte that is a number.
constexpr std::uint32_t mxfp4_amax_floor = 0x01C0;
template <class G>
KVCTS_INLINE typename G::u32 mxfp4_scale(const typename G::u32& amax) {
  return G::select(amax > 0x7F7Fu, G::splat(254), ((amax + 0x3Fu) >> 7) - 2u);
}
// DIV(1, 2^exponent), which is 2^-127 for byte 254 in both profiles.
template <class G>
KVCTS_INLINE typename G::f32 mxfp4_factor(const typename G::u32& scale) {
  return G::as_f32(G::max((G::splat(254) - scale) << 23, G::splat(0x00400000u)));
}

// UE8M0 byte of an E4M3 block whose amax has the bits f * 2^e: the exponent of amax/448 is e - 8 up
// to f = 1.75 and e - 7 above; FNUZ divides by 224. Infinity has byte 255.
// The floors 1e-4 and 1e-10 are no bf16; these, just below them, have the same exponent.
constexpr std::uint32_t key_amax_floor = 0x38D1;     // 1e-4
constexpr std::uint32_t output_amax_floor = 0x2EDB;  // 1e-10
template <class G, bool Fnuz>
KVCTS_INLINE typename G::u32 key_scale(const typename G::u32& amax) {
  return G::select(amax > 0x7F7Fu, G::splat(255), ((amax + 0x1Fu) >> 7) - (Fnuz ? 7u : 8u));
}
// 2^-exponent, and 0 for an infinite scale. Exponents end at 121, so that the profiles agree: both
// have 2^n as it is from -126 on. An FNUZ code is the OCP code of twice the value, and `Doubled`
// doubles it here.
template <class G, bool Doubled = false>
KVCTS_INLINE typename G::f32 key_factor(const typename G::u32& scale) {
  return G::as_f32(
      G::select(scale > 254u, G::splat(0), (G::splat(Doubled ? 255 : 254) - scale) << 23));
}

}  // namespace kvcts::KVCTS_TARGET
