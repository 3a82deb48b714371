// fused_inv_rope_fp8_quant over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/fused_inv_rope_fp8_quant.h"
#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/pages.h"
#include "optimized/warp/rope.h"

namespace kvcts::KVCTS_TARGET {

// 512 dims, 64 of them rotated, a scale for 128.
inline bool is_usual_output(const fused_inv_rope_fp8_quant_arguments& a) {
  return a.dims == 512 && a.rope_dims == 64 && (a.dims_per_scale == 128 || !a.quantize);
}

template <class G, bool Aligned>
KVCTS_INLINE const unsigned char* output_angles(const fused_inv_rope_fp8_quant_arguments& a,
                                                std::int64_t token) {
  return angles_of(a.table, G::template load_i64<Aligned>(a.positions + token * 8));
}

// Where a head's results go.
struct head_place {
  unsigned char* output;       // [dims]
  unsigned char* scales;       // the token's first scale (or four of them) of the head
  std::int64_t scales_stride;  // bytes from one to the next
  std::int64_t scale_words;    // of the head
};
KVCTS_INLINE head_place place_of_head(const fused_inv_rope_fp8_quant_arguments& a,
                                      std::int64_t token, std::int64_t head) {
  const std::int64_t group = divided(head, a.heads_per_group);
  const std::int64_t in_group = head - group * a.heads_per_group;
  const std::int64_t element = ((group * a.tokens + token) * a.heads_per_group + in_group) * a.dims;
  if (!a.quantize) return {a.output + element * 2, nullptr, 0, 0};
  const std::int64_t words = divided(a.dims, a.dims_per_scale) / (a.packed ? 4 : 1);
  // Heads follow each other through the groups too.
  return {a.output + element, a.scales + (head * words * a.padded_tokens + token) * 4,
          a.padded_tokens * 4, words};
}
// The last token's head has the rows behind the tokens: zeros.
template <class G, bool Aligned>
KVCTS_INLINE void clear_padding(const fused_inv_rope_fp8_quant_arguments& a, const head_place& to,
                                std::int64_t token) {
  if (token + 1 != a.tokens) return;
  for (std::int64_t i = 0; i < to.scale_words; ++i) {
    for (std::int64_t t = 1; t < a.padded_tokens - token; ++t) {
      G::template store_word<Aligned>(to.scales + i * to.scales_stride + t * 4, G::splat(0));
    }
  }
}

// UE8M0 byte of an E4M3 block of f32 values.
template <class G>
KVCTS_INLINE typename G::u32 output_scale(const typename G::f32& amax) {
  return ceil_log2_biased<G>(amax * G::splat_f32(0x1.24924Ap-9f));  // RN(1/448)
}
constexpr float output_f32_floor = 0x1.B7CDFEp-34f;  // 1e-10

// Usual heads [head, head + Heads) of a token, as far as there are some: two halves of 32 lanes, 8
// dims a lane; lanes 24..31 of the upper half rotate. A scale's dims are 16 lanes.
template <class G, bool Aligned, int Heads>
KVCTS_INLINE void quantize_output_heads(const fused_inv_rope_fp8_quant_arguments& a,
                                        const angles<G>& turned, std::int64_t token,
                                        std::int64_t head) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const unsigned char* from = a.o + token * a.o_token_stride + head * a.o_head_stride;
  typename G::bf16x8 in[Heads][2];
  KVCTS_UNROLL for (int h = 0; h < Heads; ++h) {
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      in[h][half] = G::template load_words<4, 32, Aligned>(from + h * a.o_head_stride + half * 512,
                                                           0, head + h < a.heads ? 1 : 0);
    }
  }
  KVCTS_UNROLL for (int h = 0; h < Heads; ++h) {
    if (head + h >= a.heads) break;
    const head_place to = place_of_head(a, token, head + h);
    f32 x[2][8];
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) unpack<G>(in[h][half], x[half]);
    f32 y[8];
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) y[j] = x[1][j];
    rotate<G, rope_form::inverse, upper_of_32>(y, turned);
    const auto turning = G::lane() > 23u;
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) x[1][j] = G::select(turning, y[j], x[1][j]);
    if (!a.quantize) {
      KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
        G::template store_words<4, 32, Aligned>(to.output + half * 512, 0, 1, pack<G>(x[half]));
      }
      continue;
    }
    // The lower half's amax is bf16; the rotated values are no bf16.
    f32 amax = G::splat_f32(output_f32_floor);
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) amax = larger_magnitude<G>(x[1][j], amax);
    const u32 scales[2] = {key_scale<G, false>(G::template amax<16>(in[h][0], output_amax_floor)),
                           output_scale<G>(largest_over<G, 16>(amax))};
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      const f32 factor = key_factor<G>(scales[half]);
      const f32(&v)[8] = x[half];
      const u32 lo = e4m3_word<G, e4m3_form::clamped>(v[0] * factor, v[1] * factor, v[2] * factor,
                                                      v[3] * factor);
      const u32 hi = e4m3_word<G, e4m3_form::clamped>(v[4] * factor, v[5] * factor, v[6] * factor,
                                                      v[7] * factor);
      G::template store_words<2, 32, Aligned>(to.output + half * 256, 0, 1, {{lo, hi}});
    }
    if (a.packed) {
      // Lanes 0..15 have the bytes 0 and 2, the others 1 and 3.
      const u32 own = scales[0] | (scales[1] << 16);
      G::template store_word<Aligned>(to.scales, own | (G::template shuffle_xor<16>(own) << 8));
    } else {
      KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
        G::template store_row_words<16, Aligned>(to.scales + 2 * half * to.scales_stride,
                                                 to.scales_stride, 2, scales[half] << 23);
      }
    }
    clear_padding<G, Aligned>(a, to, token);
  }
}

// A head of any dims, 32 at a time.
template <class G>
KVCTS_INLINE void quantize_any_output_head(const fused_inv_rope_fp8_quant_arguments& a,
                                           const unsigned char* angles_row, std::int64_t token,
                                           std::int64_t head) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const any_head from = {a.o + token * a.o_token_stride + head * a.o_head_stride, angles_row,
                         a.table.is_f32, static_cast<std::uint32_t>(a.dims - a.rope_dims),
                         static_cast<std::uint32_t>(a.rope_dims)};
  const head_place to = place_of_head(a, token, head);
  const auto dims_from = [](std::int64_t dim, std::int64_t end) {
    return end - dim < 32 ? end - dim : 32;
  };
  if (!a.quantize) {
    for (std::int64_t dim = 0; dim < a.dims; dim += 32) {
      const std::int64_t count = dims_from(dim, a.dims);
      const f32 x = rotated_dims<G, rope_form::inverse>(from, dim, count);
      G::template store_halves<false>(to.output + dim * 2, bf16_code<G>(x), count);
    }
    return;
  }
  u32 word = G::splat(0);  // of packed scales
  int packed = 0;
  unsigned char* scale_place = to.scales;
  for (std::int64_t first = 0; first < a.dims; first += a.dims_per_scale) {
    // Twice over the block: its amax, then its codes.
    const std::int64_t end = first + a.dims_per_scale;
    f32 amax = G::splat_f32(output_f32_floor);
    for (std::int64_t dim = first; dim < end; dim += 32) {
      amax = larger_magnitude<G>(
          rotated_dims<G, rope_form::inverse>(from, dim, dims_from(dim, end)), amax);
    }
    const u32 scale = output_scale<G>(largest_over<G, 32>(amax));
    const f32 factor = key_factor<G>(scale);
    for (std::int64_t dim = first; dim < end; dim += 32) {
      const std::int64_t count = dims_from(dim, end);
      const f32 x = rotated_dims<G, rope_form::inverse>(from, dim, count);
      G::store_bytes(to.output + dim, e4m3_code<G>(x * factor), count);
    }
    if (a.packed) {
      word = word | (scale << (8 * packed));
      if (++packed < 4) continue;
    } else {
      word = scale << 23;
    }
    G::template store_word<false>(scale_place, word);
    scale_place += to.scales_stride;
    word = G::splat(0);
    packed = 0;
  }
  clear_padding<G, false>(a, to, token);
}

}  // namespace kvcts::KVCTS_TARGET
