// mxfp4_q_quant over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/mxfp4_q_quant.h"
#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

KVCTS_INLINE std::int64_t limited(std::int64_t x, std::int64_t highest) {
  return x < highest ? x : highest;
}

// Heads [head, head + 2 * Strips) of a token, as far as there are padded heads; a strip is 2 heads,
// 16 lanes each. A block of 32 dims is 4 lanes.
template <class G, profile P, bool Aligned, int Strips>
KVCTS_INLINE void mxfp4_quantize_heads(const mxfp4_q_quant_arguments& a, std::int64_t token,
                                       std::int64_t head) {
  using u32 = typename G::u32;
  const unsigned char* q = a.q + token * a.q_token_stride + head * a.q_head_stride;
  const std::int64_t out = token * a.padded_heads + head;
  const std::int64_t heads = a.heads - head;           // to quantize; may be negative
  const std::int64_t written = a.padded_heads - head;  // to write

  typename G::bf16x8 x[Strips];
  KVCTS_UNROLL for (int s = 0; s < Strips; ++s) {
    x[s] = G::template load_words<4, 16, Aligned>(q + 2 * s * a.q_head_stride, a.q_head_stride,
                                                  heads - 2 * s);
  }
  u32 scales[Strips];
  KVCTS_UNROLL for (int s = 0; s < Strips; ++s) {
    const u32 scale = mxfp4_scale<G>(G::template amax<4>(x[s], mxfp4_amax_floor));
    const u32 codes = G::encode_e2m1(x[s], mxfp4_factor<G>(scale));  // of absent heads: 0
    G::template store_words<1, 16, Aligned>(a.q_packed + (out + 2 * s) * 64, 64, written - 2 * s,
                                            {{codes}});
    const std::int64_t lanes = limited(heads - 2 * s, 2) * 16;
    scales[s] = G::select(G::lane() < static_cast<std::uint32_t>(lanes < 0 ? 0 : lanes), scale,
                          G::splat(0));
  }
  G::template store_block_bytes<4>(a.q_scale + out * 4, scales, written * 4);
}

// The weights of heads [head, head + count), count at most 32.
template <class G, bool Aligned>
KVCTS_INLINE void mxfp4_scale_weights(const mxfp4_q_quant_arguments& a, std::int64_t token,
                                      std::int64_t head, std::int64_t count) {
  const std::int64_t heads = limited(a.heads - head, count);
  const unsigned char* row = a.index_weights + token * a.weights_token_stride;
  const typename G::f32 w = a.weights_are_f32
                                ? G::template load_f32<Aligned>(row + head * 4, heads)
                                : G::template load_bf16<Aligned>(row + head * 2, heads);
  // A padded head's weight is 0, whatever the factor.
  const std::uint32_t live = heads < 0 ? 0 : static_cast<std::uint32_t>(heads);
  const typename G::u32 scaled =
      G::select(G::lane() < live, G::bits(G::mul(w, a.weight_scale)), G::splat(0));
  G::template store_f32<Aligned>(a.weights + (token * a.padded_heads + head) * 4, G::as_f32(scaled),
                                 limited(a.padded_heads - head, count));
}

}  // namespace kvcts::KVCTS_TARGET
