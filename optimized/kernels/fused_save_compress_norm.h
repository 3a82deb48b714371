// fused_save_compress_norm over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/fused_save_compress_norm.h"
#include "optimized/warp/rows.h"

namespace kvcts::KVCTS_TARGET {

// A row of 512 f32 as the four warps of the public kernel hold it, 4 elements a lane: part w is
// elements [128 w, 128 w + 128). One group holds all four.
template <class G>
struct latent_row {
  row_part<G, 4> warp[4];
};

// The row of a token at the end of a group of one.
template <class G, bool Aligned>
KVCTS_INLINE latent_row<G> load_latent_row(const unsigned char* from) {
  latent_row<G> x;
  KVCTS_UNROLL for (int w = 0; w < 4; ++w) {
    x.warp[w] = load_f32_part<G, 4, Aligned>(from + w * 512);
  }
  return x;
}

// Part w of two rows [kv 512 | score 512], pooled by the softmax of each dim's two scores.
// `earlier` may be a ring row, which this launch changes.
template <class G, profile P, bool Aligned>
KVCTS_INLINE row_part<G, 4> pooled_part(const unsigned char* earlier, const unsigned char* later,
                                        int w) {
  using f32 = typename G::f32;
  constexpr int scores = 2048;
  const auto score0 = G::template load_changing_words<4, Aligned>(earlier + scores + w * 512);
  const auto score1 = load_f32_part<G, 4, Aligned>(later + scores + w * 512);
  const auto kv0 = G::template load_changing_words<4, Aligned>(earlier + w * 512);
  const auto kv1 = load_f32_part<G, 4, Aligned>(later + w * 512);
  row_part<G, 4> x;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    const f32 s0 = G::as_f32(score0.w[j]);
    const f32 s1 = score1.v[j];
    // The larger score's exponential is that of 0, or of NaN where it is infinite: +infinity beside
    // a number makes no number. Where a score is NaN every form of the maximum ends in NaN.
    const f32 m = G::larger(s0, s1);
    const f32 e = exp_of_nonpositive<P>(G::as_f32(G::bits(s0 - s1) | 0x80000000u));
    const f32 one = (m - m) + 1.0f;
    f32 p0 = G::select(s1 > s0, e, one);
    f32 p1 = G::select(s1 > s0, one, e);
    divide_both_by_one_to_two<P>(p0, p1, e + one);
    x.v[j] = G::fma(p0, G::as_f32(kv0.w[j]), p1 * kv1.v[j]);
  }
  return x;
}
template <class G, profile P, bool Aligned>
KVCTS_INLINE latent_row<G> pooled_rows(const unsigned char* earlier, const unsigned char* later) {
  latent_row<G> x;
  KVCTS_UNROLL for (int w = 0; w < 4; ++w) {
    x.warp[w] = pooled_part<G, P, Aligned>(earlier, later, w);
  }
  return x;
}

// RMSNorm over four warps, (W0 + W2) + (W1 + W3), to a bf16 row.
template <class G, bool Aligned>
KVCTS_INLINE row_part<G, 4> load_weight_part(const fused_save_compress_norm_arguments& a, int w) {
  return load_parameter_part<G, 4, Aligned>(a.weight, a.weight_is_f32, w * 128);
}
template <class G, profile P>
KVCTS_INLINE float reciprocal_root_of_sum(const fused_save_compress_norm_arguments& a,
                                          const typename G::f32& sum) {
  // 1/512 is exact: the fused and the separate form are one.
  const typename G::f32 variance = G::fma(sum, G::splat_f32(1.0f / 512), G::splat_f32(a.eps));
  return rsqrt<P>(G::first(variance));
}
template <class G, bool Aligned>
KVCTS_INLINE void store_latent_part(const fused_save_compress_norm_arguments& a,
                                    const row_part<G, 4>& x, const row_part<G, 4>& weight,
                                    float root, std::int64_t token, int w) {
  const typename G::f32 r = G::splat_f32(root);
  row_part<G, 4> y;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) y.v[j] = x.v[j] * r * weight.v[j];
  store_bf16_part<G, 4, Aligned>(a.latent + token * a.latent_stride + w * 256, y);
}
template <class G, profile P, bool Aligned>
KVCTS_INLINE void store_latent(const fused_save_compress_norm_arguments& a, const latent_row<G>& x,
                               std::int64_t token) {
  typename G::f32 sums[4];
  KVCTS_UNROLL for (int w = 0; w < 4; ++w) {
    sums[w] = sum_over_lanes<G>(squares_in_lane<G, 4>(x.warp[w]));
  }
  const float r = reciprocal_root_of_sum<G, P>(a, (sums[0] + sums[2]) + (sums[1] + sums[3]));
  KVCTS_UNROLL for (int w = 0; w < 4; ++w) {
    store_latent_part<G, Aligned>(a, x.warp[w], load_weight_part<G, Aligned>(a, w), r, token, w);
  }
}

template <class G, bool Aligned>
KVCTS_INLINE std::int64_t slot_of_token(const fused_save_compress_norm_arguments& a,
                                        std::int64_t token) {
  return G::template load_i64<Aligned>(a.slot_mapping + token * 8);
}

template <class G, bool Aligned>
KVCTS_INLINE bool ends_a_group(const fused_save_compress_norm_arguments& a, std::int64_t token) {
  return (G::template load_i64<Aligned>(a.positions + token * 8) & 1) == 1;  // of two
}

KVCTS_INLINE unsigned char* ring_row(const fused_save_compress_norm_arguments& a, std::int64_t page,
                                     std::int64_t row) {
  return a.state + page * a.state_page_stride + row * a.state_row_stride;
}

// Ratio 2: the token ends a group that lies in this chunk.
template <class G, bool Aligned>
KVCTS_INLINE bool ends_a_group_of_chunk(const fused_save_compress_norm_arguments& a,
                                        std::int64_t token) {
  const std::int64_t slot = slot_of_token<G, Aligned>(a, token);
  const bool ends = ends_a_group<G, Aligned>(a, token);
  const std::int32_t request = G::template load_i32<Aligned>(a.request_of_token + token * 4);
  if (slot < 0 || !ends) return false;
  // The first token is the request's task.
  return token != G::template load_i32<Aligned>(a.query_starts + std::int64_t{request} * 4);
}
template <class G, profile P, bool Aligned>
KVCTS_INLINE void compress_group(const fused_save_compress_norm_arguments& a, std::int64_t token) {
  const unsigned char* row = a.kv_score + token * a.kv_score_stride;
  store_latent<G, P, Aligned>(a, pooled_rows<G, P, Aligned>(row - a.kv_score_stride, row), token);
}

// Ratio 1.
template <class G, profile P, bool Aligned>
KVCTS_INLINE void compress_token(const fused_save_compress_norm_arguments& a, std::int64_t token) {
  if (slot_of_token<G, Aligned>(a, token) < 0) return;
  const unsigned char* row = a.kv_score + token * a.kv_score_stride;
  store_latent<G, P, Aligned>(a, load_latent_row<G, Aligned>(row), token);
}

// The latent of a request's first token, whose group may have begun in an earlier chunk, and then
// the ring: one task does both, since the ring row that is read may be stored anew.
template <class G, profile P, bool Aligned>
KVCTS_INLINE void compress_request(const fused_save_compress_norm_arguments& a,
                                   std::int64_t request) {
  const std::int64_t start = G::template load_i32<Aligned>(a.query_starts + request * 4);
  const std::int64_t end = G::template load_i32<Aligned>(a.query_starts + request * 4 + 4);
  if (start >= end || start >= a.tokens) return;
  const std::int64_t first_slot = slot_of_token<G, Aligned>(a, start);
  if (first_slot < 0) return;
  if (ends_a_group<G, Aligned>(a, start)) {
    const std::int64_t position = G::template load_i64<Aligned>(a.positions + start * 8);
    const unsigned char* earlier =
        ring_row(a, first_slot / a.capacity, (position - 1) % a.capacity);
    const unsigned char* row = a.kv_score + start * a.kv_score_stride;
    store_latent<G, P, Aligned>(a, pooled_rows<G, P, Aligned>(earlier, row), start);
  }
  G::converge();
  const std::int64_t first_kept = end - a.capacity > start ? end - a.capacity : start;
  for (std::int64_t token = first_kept; token < end && token < a.tokens; ++token) {
    const std::int64_t slot = slot_of_token<G, Aligned>(a, token);
    if (slot < 0) continue;
    const unsigned char* from = a.kv_score + token * a.kv_score_stride;
    unsigned char* to = ring_row(a, slot / a.capacity, slot % a.capacity);
    KVCTS_UNROLL for (int part = 0; part < 8; ++part) {
      G::template store_words<4, 32, Aligned>(
          to + part * 512, 0, 1, G::template load_words<4, 32, Aligned>(from + part * 512, 0, 1));
    }
  }
}

// Tasks [0, tokens) are tokens, those behind them requests.
template <class G, profile P, bool Aligned>
KVCTS_INLINE void save_compress_norm_task(const fused_save_compress_norm_arguments& a,
                                          std::int64_t task) {
  if (task >= a.tokens) {
    compress_request<G, P, Aligned>(a, task - a.tokens);
  } else if (a.ratio == 1) {
    compress_token<G, P, Aligned>(a, task);
  } else if (ends_a_group_of_chunk<G, Aligned>(a, task)) {
    compress_group<G, P, Aligned>(a, task);
  }
}

}  // namespace kvcts::KVCTS_TARGET
