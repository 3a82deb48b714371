// indexer_k_norm_rope_store over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/indexer_k_norm_rope_store.h"
#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/group_rows.h"
#include "optimized/warp/pages.h"
#include "optimized/warp/rope.h"
#include "optimized/warp/rows.h"

namespace kvcts::KVCTS_TARGET {

// A key of 128 dims is 16 lanes of 8; a group does two keys.

// The norm's weights, for both halves of the lanes.
template <class G>
struct key_weights {
  typename G::f32 w[8];
};
template <class G, bool Aligned>
KVCTS_INLINE key_weights<G> load_key_weights(const indexer_k_norm_rope_store_arguments& a) {
  key_weights<G> r;
  if (a.weight_is_f32) {
    const auto in = G::template load_words<8, 16, Aligned>(a.weight, 0, 2);
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) r.w[j] = G::as_f32(in.w[j]);
  } else {
    unpack<G>(G::template load_words<4, 16, Aligned>(a.weight, 0, 2), r.w);
  }
  return r;
}

// The sum of squares of each key, as a warp holds it that has the key alone, 4 dims a lane: a lane
// here is two lanes there, 2t and 2t + 1, and the tree's last step adds these.
template <class G>
KVCTS_INLINE typename G::f32 key_squares(const typename G::f32 (&x)[8]) {
  typename G::f32 sums[2];
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    typename G::f32 sum =
        squares_in_lane<G, 4>({{x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]}});
    sum = sum + G::template shuffle_xor<8>(sum);
    sum = sum + G::template shuffle_xor<4>(sum);
    sum = sum + G::template shuffle_xor<2>(sum);
    sums[i] = sum + G::template shuffle_xor<1>(sum);
  }
  return sums[0] + sums[1];
}

// bf16 of the norm, then bf16 of its rotation.
template <class G, profile P>
KVCTS_INLINE typename G::bf16x8 normed_and_rotated(const typename G::bf16x8& in,
                                                   const key_weights<G>& weights,
                                                   const angles<G>& turned, float eps) {
  typename G::f32 x[8];
  unpack<G>(in, x);
  const typename G::f32 variance =
      G::fma(key_squares<G>(x), G::splat_f32(0x1p-7f), G::splat_f32(eps));
  const typename G::f32 r = G::template rsqrt_halves<P>(variance);
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) x[j] = x[j] * r * weights.w[j];
  const auto turning = (G::lane() & 8u) > 0u;
  return rotated_bf16<G, rope_form::store, upper_of_16>(pack<G>(x),
                                                        still_outside<G>(turning, turned));
}

// A block's byte, from its 4 lanes to its place in the key's word.
template <class G>
KVCTS_INLINE typename G::u32 word_of_blocks(const typename G::u32& scale) {
  typename G::u32 word = scale << (((G::lane() >> 2) & 3u) << 3);
  word = word | G::template shuffle_xor<4>(word);
  return word | G::template shuffle_xor<8>(word);
}

// Keys one and two, or one alone.
template <class G, profile P, bool Mxfp4, bool Aligned>
KVCTS_INLINE void store_keys(const indexer_k_norm_rope_store_arguments& a,
                             const key_weights<G>& weights, const group_row& one,
                             const group_row& two, std::int64_t keys) {
  using u32 = typename G::u32;
  const auto in = G::template load_words<4, 16, Aligned>(
      a.k + one.row * a.k_row_stride, (two.row - one.row) * a.k_row_stride, keys);
  const unsigned char* angles_row = angles_of(a.table, one.position);
  const angles<G> turned = load_angles<G, Aligned>(
      angles_row, angles_of(a.table, two.position) - angles_row, keys, a.table.is_f32);
  const auto y = normed_and_rotated<G, P>(in, weights, turned, a.eps);

  constexpr std::int64_t data_bytes = Mxfp4 ? 64 : 128;
  const record_place to = place_of_slot(a.cache, one.slot, data_bytes, 4);
  const record_place next = place_of_slot(a.cache, two.slot, data_bytes, 4);
  const std::int64_t scale_stride = next.scales - to.scales;
  if constexpr (Mxfp4) {
    const u32 scale = mxfp4_scale<G>(G::template amax<4>(y, mxfp4_amax_floor));
    // 2^-127 is 0 in one profile.
    constexpr bool flushed = P == profile::nvidia;
    const typename G::f32 factor =
        flushed ? G::as_f32((G::splat(254) - scale) << 23) : mxfp4_factor<G>(scale);
    const u32 codes = G::template encode_e2m1<flushed>(y, factor);
    G::template store_words<1, 16, Aligned>(to.data, next.data - to.data, keys, {{codes}});
    G::template store_row_words<16, Aligned>(to.scales, scale_stride, keys,
                                             word_of_blocks<G>(scale));
  } else {
    const u32 scale = key_scale<G, false>(G::template amax<16>(y, key_amax_floor));
    u32 lo;
    u32 hi;
    G::encode_e4m3(y, key_factor<G>(scale), lo, hi);
    if (a.tiled) {
      // [page's tokens / 16, 8, 16 tokens, 16 bytes]: 16 bytes a token where a row has 128.
      unsigned char* tiles = to.data - (one.slot & 15) * 112;
      unsigned char* next_tiles = next.data - (two.slot & 15) * 112;
      G::template store_tiles<16, Aligned>(tiles, next_tiles - tiles, keys, lo, hi);
    } else {
      G::template store_words<2, 16, Aligned>(to.data, next.data - to.data, keys, {{lo, hi}});
    }
    G::template store_row_words<16, Aligned>(to.scales, scale_stride, keys, scale << 23);
  }
}

}  // namespace kvcts::KVCTS_TARGET
