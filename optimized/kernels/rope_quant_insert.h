// rope_quant_insert over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/rope_quant_insert.h"
#include "optimized/kernels/key_record.h"
#include "optimized/warp/group_rows.h"
#include "optimized/warp/rope.h"

namespace kvcts::KVCTS_TARGET {

// A latent of 512 dims is two halves of 32 lanes, 8 dims a lane; lanes 24..31 of the upper half
// rotate. Except for v4, the other dims run the formula with c = 1 and s = 0.
template <class G>
struct latent {
  typename G::f32 x[2][8];
};
template <class G>
KVCTS_INLINE latent<G> rotated_latent(const typename G::bf16x8 (&in)[2], const angles<G>& turned) {
  latent<G> r;
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) unpack<G>(in[half], r.x[half]);
  const typename G::f32 zero = G::splat_f32(0.0f);
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
    rotate_pair<G, rope_form::store, 0>(r.x[0][2 * i], r.x[0][2 * i + 1], G::splat_f32(1.0f), zero);
  }
  rotate<G, rope_form::store, upper_of_32>(r.x[1], still_outside<G>(G::lane() > 23u, turned));
  return r;
}

// max |x| of a block of Lanes lanes, NaN ignored, at least `floor`.
template <class G, int Lanes>
KVCTS_INLINE typename G::f32 block_amax(const typename G::f32 (&x)[8], float floor) {
  typename G::f32 amax = G::splat_f32(floor);
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) amax = larger_magnitude<G>(x[j], amax);
  return largest_over<G, Lanes>(amax);
}

// 528 bytes: E4M3, a UE8M0 scale for 32 dims.
template <class G>
KVCTS_INLINE void mxfp8_codes(const typename G::f32 (&x)[8], typename G::u32& scale,
                              typename G::u32& lo, typename G::u32& hi) {
  const typename G::f32 amax = block_amax<G, 4>(x, 0x1.A36E2Ep-14f);  // 1e-4
  scale = ceil_log2_biased<G>(amax * G::splat_f32(0x1.24924Ap-9f));   // RN(1/448)
  const typename G::f32 factor = key_factor<G>(scale);
  lo = e4m3_word<G, e4m3_form::clamped>(x[0] * factor, x[1] * factor, x[2] * factor, x[3] * factor);
  hi = e4m3_word<G, e4m3_form::clamped>(x[4] * factor, x[5] * factor, x[6] * factor, x[7] * factor);
}
template <class G, bool Aligned>
KVCTS_INLINE void store_mxfp8_latent(const record_place& to, const latent<G>& in) {
  using u32 = typename G::u32;
  u32 scales[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    u32 lo;
    u32 hi;
    mxfp8_codes<G>(in.x[half], scales[half], lo, hi);
    G::template store_words<2, 32, Aligned>(to.data + half * 256, 0, 1, {{lo, hi}});
  }
  G::template store_block_bytes<4>(to.scales, scales, 16);
}

// x / d as far as an E2M1 code shows it, of an E4M3 number d and 1/d = inverse + rest. d and the
// rounding boundaries have 4 and 3 significant bits, so that a quotient is on a boundary, and then
// exact here, or more than half an ulp away from it, and the sum stays on its side.
template <class G>
KVCTS_INLINE typename G::f32 nvfp4_quotient(const typename G::f32& x,
                                            const typename G::f32& inverse,
                                            const typename G::f32& rest) {
  return G::fma(x, inverse, x * rest);
}

// 288 bytes: E2M1, an E4M3 scale for 16 dims.
template <class G>
KVCTS_INLINE void nvfp4_codes(const typename G::f32 (&x)[8], typename G::u32& scale,
                              typename G::u32& codes) {
  using f32 = typename G::f32;
  // amax * RN(1/6), limited to [2^-9, 448]; where all are NaN it is 2^-9.
  const f32 t = block_amax<G, 2>(x, 0.0f) * G::splat_f32(0x1.555556p-3f);
  scale = e4m3_code<G>(
      G::as_f32(G::min(G::max(G::bits(t), G::splat(0x3B000000u)), G::splat(0x43E00000u))));
  // The code's fields, 7 - 127 apart in their exponents; subnormals too.
  const f32 d = G::as_f32(scale << 20) * G::splat_f32(0x1p120f);
  if constexpr (!G::has_fma) {
    codes = e2m1_code<G>(x[0] / d);
    KVCTS_UNROLL for (int j = 1; j < 8; ++j) codes = codes | (e2m1_code<G>(x[j] / d) << (4 * j));
    return;
  }
  // An ulp below RN(1/d), so that the rest is positive: -0 and infinities stay what they are.
  const f32 nearest = G::splat_f32(1.0f) / d;
  const f32 inverse = G::as_f32(G::bits(nearest) - 1u);
  const f32 rest = G::fma(G::negate(inverse), d, G::splat_f32(1.0f)) * nearest;
  codes = e2m1_code<G>(nvfp4_quotient<G>(x[0], inverse, rest));
  KVCTS_UNROLL for (int j = 1; j < 8; ++j) {
    codes = codes | (e2m1_code<G>(nvfp4_quotient<G>(x[j], inverse, rest)) << (4 * j));
  }
}
template <class G, bool Aligned>
KVCTS_INLINE void store_nvfp4_latent(const record_place& to, const latent<G>& in) {
  using u32 = typename G::u32;
  u32 scales[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    u32 codes;
    nvfp4_codes<G>(in.x[half], scales[half], codes);
    G::template store_words<1, 32, Aligned>(to.data + half * 128, 0, 1, {{codes}});
  }
  G::template store_block_bytes<2>(to.scales, scales, 32);
}

KVCTS_INLINE unsigned char* plain_row(const rope_quant_insert_arguments& a, std::int64_t slot) {
  const std::int64_t page = page_of_slot(a.cache, slot);
  return a.cache.start + page * a.cache.page_stride +
         (slot - page * a.cache.block_size) * a.entry_stride;
}

// The row, if it is stored.
template <class G, profile P, latent_record Record, bool Aligned>
KVCTS_INLINE void insert_latent(const rope_quant_insert_arguments& a, std::int64_t row) {
  group_row at;
  if (!load_group_row<G, Aligned>(a.at, row, at)) return;
  typename G::bf16x8 in[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    in[half] = G::template load_words<4, 32, Aligned>(
        a.latent + row * a.latent_row_stride + half * 512, 0, 1);
  }
  const angles<G> turned =
      load_angles<G, Aligned>(angles_of(a.table, at.position), 0, 2, a.table.is_f32);

  if constexpr (Record == latent_record::v4) {
    // The scales and codes are those of the row as it came.
    const auto tail = rotated_bf16<G, rope_form::store, upper_of_32>(in[1], turned);
    store_key_record<G, 584, false, Aligned>(place_of_slot(a.cache, at.slot, 576, 8), in, tail);
    return;
  }
  const latent<G> rotated = rotated_latent<G>(in, turned);
  if constexpr (Record == latent_record::v41_mxfp8) {
    store_mxfp8_latent<G, Aligned>(place_of_slot(a.cache, at.slot, 512, 16), rotated);
  } else if constexpr (Record == latent_record::v41_nvfp4) {
    store_nvfp4_latent<G, Aligned>(place_of_slot(a.cache, at.slot, 256, 32), rotated);
  } else {
    unsigned char* to = plain_row(a, at.slot);
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      const auto x = pack<G>(rotated.x[half]);
      if constexpr (Record == latent_record::bf16) {
        G::template store_words<4, 32, Aligned>(to + half * 512, 0, 1, x);
      } else {
        const auto bits = static_cast<std::uint32_t>(G::template load_i32<Aligned>(a.fp8_scale));
        typename G::u32 lo;
        typename G::u32 hi;
        G::encode_e4m3(x, div_uniform<P>(G::splat_f32(1.0f), G::as_f32(G::splat(bits))), lo, hi);
        G::template store_words<2, 32, Aligned>(to + half * 256, 0, 1, {{lo, hi}});
      }
    }
  }
}

}  // namespace kvcts::KVCTS_TARGET
