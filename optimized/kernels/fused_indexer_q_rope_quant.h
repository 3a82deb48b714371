// fused_indexer_q_rope_quant over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/fused_indexer_q_rope_quant.h"
#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/rope.h"

namespace kvcts::KVCTS_TARGET {

// Values are bf16 from the rotation on: the scales follow from the upper halves of their amax.
template <query_codes Form>
constexpr bool is_fnuz = Form == query_codes::e4m3fnuz;
template <query_codes Form>
constexpr e4m3_form query_e4m3 = is_fnuz<Form> ? e4m3_form::fnuz_unclamped : e4m3_form::unclamped;

// 128 dims, 64 of them rotated.
inline bool is_usual_query(const fused_indexer_q_rope_quant_arguments& a) {
  return a.dims == 128 && a.rope_dims == 64;
}

KVCTS_INLINE const unsigned char* query_head(const fused_indexer_q_rope_quant_arguments& a,
                                             std::int64_t token, std::int64_t head) {
  return a.q + token * a.q_token_stride + head * a.q_head_stride;
}
template <class G, bool Aligned>
KVCTS_INLINE const unsigned char* query_angles(const fused_indexer_q_rope_quant_arguments& a,
                                               std::int64_t token) {
  return angles_of(a.table, G::template load_i64<Aligned>(a.positions + token * 8));
}

// f32 bits of a head's weight.
template <class G, bool Aligned>
KVCTS_INLINE std::uint32_t query_weight(const fused_indexer_q_rope_quant_arguments& a,
                                        std::int64_t token, std::int64_t head) {
  const unsigned char* row = a.weights + token * a.weights_token_stride;
  if (a.weights_are_f32) {
    return static_cast<std::uint32_t>(G::template load_i32<Aligned>(row + head * 4));
  }
  return G::template load_u16<Aligned>(row + head * 2) << 16;
}
// ((weight * scale) * softmax) * head of a UE8M0 scale.
template <class G>
KVCTS_INLINE typename G::u32 folded_weight(const fused_indexer_q_rope_quant_arguments& a,
                                           const typename G::u32& weight,
                                           const typename G::u32& scale) {
  const typename G::f32 w = G::as_f32(weight) * power_of_biased<G>(scale) *
                            G::splat_f32(a.softmax_scale) * G::splat_f32(a.head_scale);
  return G::bits(canonical<G>(w));
}

// Usual heads [head, head + 2 * Strips) of a token, as far as there are some; a strip is two heads,
// 16 lanes each, 8 dims a lane.
template <class G, query_codes Form, bool Aligned, int Strips>
KVCTS_INLINE void quantize_query_heads(const fused_indexer_q_rope_quant_arguments& a,
                                       const angles<G>& turned, std::int64_t token,
                                       std::int64_t head) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const std::int64_t out = token * a.heads + head;
  const std::int64_t heads = a.heads - head;
  const unsigned char* from = query_head(a, token, head);
  typename G::bf16x8 x[Strips];
  KVCTS_UNROLL for (int s = 0; s < Strips; ++s) {
    x[s] = G::template load_words<4, 16, Aligned>(from + 2 * s * a.q_head_stride, a.q_head_stride,
                                                  heads - 2 * s);
  }
  const auto turning = (G::lane() & 8u) > 0u;
  u32 scales[Strips];
  KVCTS_UNROLL for (int s = 0; s < Strips; ++s) {
    const std::int64_t here = heads - 2 * s;
    const auto y =
        select<G>(turning, rotated_bf16<G, rope_form::query, upper_of_16>(x[s], turned), x[s]);
    if constexpr (Form == query_codes::mxfp4) {
      scales[s] = mxfp4_scale<G>(G::template amax<4>(y, mxfp4_amax_floor));
      const u32 codes = G::encode_e2m1(y, mxfp4_factor<G>(scales[s]));
      G::template store_words<1, 16, Aligned>(a.codes + (out + 2 * s) * 64, 64, here, {{codes}});
    } else {
      scales[s] = key_scale<G, is_fnuz<Form>>(G::template amax<16>(y, key_amax_floor));
      const f32 factor = key_factor<G>(scales[s]);
      f32 v[8];
      unpack<G>(y, v);
      KVCTS_UNROLL for (int j = 0; j < 8; ++j) v[j] = v[j] * factor;
      const u32 lo = e4m3_word<G, query_e4m3<Form>>(v[0], v[1], v[2], v[3]);
      const u32 hi = e4m3_word<G, query_e4m3<Form>>(v[4], v[5], v[6], v[7]);
      G::template store_words<2, 16, Aligned>(a.codes + (out + 2 * s) * 128, 128, here, {{lo, hi}});
    }
  }
  if constexpr (Form == query_codes::mxfp4) {
    G::template store_block_bytes<4>(a.scales + out * 4, scales, heads * 4);
  } else {
    KVCTS_UNROLL for (int s = 0; s < Strips; ++s) {
      const std::int64_t here = heads - 2 * s;
      if (here <= 0) break;
      const std::uint32_t one = query_weight<G, Aligned>(a, token, head + 2 * s);
      const std::uint32_t two = here > 1 ? query_weight<G, Aligned>(a, token, head + 2 * s + 1) : 0;
      const u32 weight = G::select(G::lane() < 16u, G::splat(one), G::splat(two));
      G::template store_row_words<16, Aligned>(a.weights_out + (out + 2 * s) * 4, 4, here,
                                               folded_weight<G>(a, weight, scales[s]));
    }
  }
}

// MXFP4: (weight * softmax) * head of heads [head, head + count), count at most 32.
template <class G, bool Aligned>
KVCTS_INLINE void scale_query_weights(const fused_indexer_q_rope_quant_arguments& a,
                                      std::int64_t token, std::int64_t head, std::int64_t count) {
  const std::int64_t heads = a.heads - head < count ? a.heads - head : count;
  const unsigned char* row = a.weights + token * a.weights_token_stride;
  const typename G::f32 weight = a.weights_are_f32
                                     ? G::template load_f32<Aligned>(row + head * 4, heads)
                                     : G::template load_bf16<Aligned>(row + head * 2, heads);
  const typename G::f32 w = weight * G::splat_f32(a.softmax_scale) * G::splat_f32(a.head_scale);
  const std::int64_t out = token * a.heads + head;
  if (a.weights_out_are_f32) {
    G::template store_f32<Aligned>(a.weights_out + out * 4, canonical<G>(w), heads);
  } else {
    G::template store_halves<Aligned>(a.weights_out + out * 2, bf16_code<G>(w), heads);
  }
}

// A head of any dims, 32 at a time.
template <class G, query_codes Form>
KVCTS_INLINE void quantize_any_query_head(const fused_indexer_q_rope_quant_arguments& a,
                                          const unsigned char* angles_row, std::int64_t token,
                                          std::int64_t head) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const any_head from = {query_head(a, token, head), angles_row, a.table.is_f32,
                         static_cast<std::uint32_t>(a.dims - a.rope_dims),
                         static_cast<std::uint32_t>(a.rope_dims)};
  const std::int64_t out = token * a.heads + head;
  if constexpr (Form == query_codes::mxfp4) {
    for (std::int64_t dim = 0; dim < a.dims; dim += 32) {
      const f32 x = through_bf16<G>(rotated_dims<G, rope_form::query>(from, dim, 32));
      const f32 amax =
          largest_over<G, 32>(larger_magnitude<G>(x, G::as_f32(G::splat(mxfp4_amax_floor << 16))));
      const u32 scale = mxfp4_scale<G>(G::bits(amax) >> 16);
      const u32 code = e2m1_code<G>(x * mxfp4_factor<G>(scale));
      G::store_even_bytes(a.codes + (out * a.dims + dim) / 2,
                          code | (G::template shuffle_xor<1>(code) << 4));
      G::store_bytes(a.scales + (out * a.dims + dim) / 32, scale, 1);
    }
    return;
  }
  // Twice over the head: its amax, then its codes.
  const auto dims_from = [&](std::int64_t dim) { return a.dims - dim < 32 ? a.dims - dim : 32; };
  f32 amax = G::as_f32(G::splat(key_amax_floor << 16));
  for (std::int64_t dim = 0; dim < a.dims; dim += 32) {
    const f32 x = rotated_dims<G, rope_form::query>(from, dim, dims_from(dim));
    amax = larger_magnitude<G>(through_bf16<G>(x), amax);
  }
  const u32 scale = key_scale<G, is_fnuz<Form>>(G::bits(largest_over<G, 32>(amax)) >> 16);
  const f32 factor = key_factor<G>(scale);
  for (std::int64_t dim = 0; dim < a.dims; dim += 32) {
    const f32 x = through_bf16<G>(rotated_dims<G, rope_form::query>(from, dim, dims_from(dim)));
    G::store_bytes(a.codes + out * a.dims + dim, e4m3_code_of<G, query_e4m3<Form>>(x * factor),
                   dims_from(dim));
  }
  const u32 weight = G::splat(query_weight<G, false>(a, token, head));
  G::template store_word<false>(a.weights_out + out * 4, folded_weight<G>(a, weight, scale));
}

}  // namespace kvcts::KVCTS_TARGET
