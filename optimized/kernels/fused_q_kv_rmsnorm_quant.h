// fused_q_kv_rmsnorm_quant over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/fused_q_kv_rmsnorm_quant.h"
#include "optimized/warp/norm.h"

namespace kvcts::KVCTS_TARGET {

// UE8M0 byte of n = RN(amax/448), n negative where no value is a number: the exponent field, one
// more for any mantissa bit; 0 up to 2^-127; 254 for infinity and for no number.
template <class G>
KVCTS_INLINE typename G::u32 integer_scale(const typename G::f32& n) {
  const typename G::u32 b = G::bits(n);
  const typename G::u32 up = G::min((b + 0x7FFFFFu) >> 23, G::splat(254));
  return G::select(b > 0x00400000u, up, G::splat(0));
}
// 2^(127 - scale); 0 where the scale is 0 or 254.
template <class G>
KVCTS_INLINE typename G::f32 integer_multiplier(const typename G::u32& scale) {
  const typename G::u32 power = (G::splat(254) - scale) << 23;
  return G::as_f32(G::select(scale > 0u, power, G::splat(0)));
}
// Of a block whose largest magnitude is amax, or -1 where no value is a number.
template <class G>
KVCTS_INLINE typename G::u32 scale_of_block(const typename G::f32& amax) {
  return integer_scale<G>(amax * 0x1.24924ap-9f);  // RN(1/448)
}

// A row's scales of tile 0; those of tile i are 512 i bytes behind. A tile is 128 rows of 4 bytes,
// 16 bytes for rows 32 apart.
KVCTS_INLINE unsigned char* scales_of_row(const fused_q_kv_rmsnorm_quant_arguments& a,
                                          std::int64_t row) {
  return a.scales + row / 128 * (a.tiles * 512) + row % 32 * 16 + row % 128 / 32 * 4;
}

// A row of whole parts of 256 dims: a block of 32 is 4 lanes, a part has two tiles.
template <class G, int Warps, bool Aligned>
KVCTS_INLINE void quantize_held_q(const fused_q_kv_rmsnorm_quant_arguments& a, std::int64_t row,
                                  profile p) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const int parts = a.q.norm.whole_parts;
  const auto held = load_row<G, 8, Warps, Aligned>(a.q.from + row * a.q.from_stride, parts);
  const float r = reciprocal_root(sum_of_squares<G, 8, Warps, Warps>(held, parts), a.q.norm, p);
  unsigned char* to = a.q.to + row * a.q.to_stride;
  u32 tile_words = G::splat(0);  // lane i: of part i's first tile, lane 16 + i: of its second
  KVCTS_DEVICE_UNROLL for (int i = 0; i < Warps; ++i) {
    if (i >= parts) break;
    row_part<G, 8> y = rms_normed_part<G, 8, Aligned>(held.part[i], a.q.weight, i * 256, r);
    f32 amax = G::splat_f32(-1.0f);
    KVCTS_UNROLL for (int j = 0; j < 8; j += 2) {
      const u32 rounded = G::pack_bf16(y.v[j], y.v[j + 1]);
      y.v[j] = bf16_even<G>(rounded);
      y.v[j + 1] = bf16_odd<G>(rounded);
      amax = larger_magnitude<G>(y.v[j], larger_magnitude<G>(y.v[j + 1], amax));
    }
    const u32 scale = scale_of_block<G>(largest_over<G, 4>(amax));
    store_e4m3_part<G, 8, Aligned, e4m3_form::unclamped>(to + i * 256, y,
                                                         integer_multiplier<G>(scale));
    u32 word = scale << ((G::lane() << 1) & 24u);  // byte lane / 4 % 4
    word = word | G::template shuffle_xor<4>(word);
    word = word | G::template shuffle_xor<8>(word);
    tile_words = G::select((G::lane() & 15u) == static_cast<std::uint32_t>(i), word, tile_words);
  }
  const u32 tile = ((G::lane() & 15u) << 1) + (G::lane() >> 4);
  G::template scatter_words<Aligned>(scales_of_row(a, row), tile << 9, tile_words,
                                     (G::lane() & 15u) < static_cast<std::uint32_t>(parts));
}

// Any row, a block of 32 dims at a time.
template <class G>
KVCTS_INLINE void quantize_any_q(const fused_q_kv_rmsnorm_quant_arguments& a, std::int64_t row,
                                 profile p) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const unsigned char* from = a.q.from + row * a.q.from_stride;
  unsigned char* scales = scales_of_row(a, row);
  const f32 r = reciprocal_root_of_row<G>(from, a.q.norm, 0.0f, p);
  for (std::int64_t block = 0; block < a.tiles * 4; ++block) {
    u32 scale = G::splat(0);
    if (block < a.blocks) {
      const f32 y = through_bf16<G>(rms_normed<G>(a.q, from, block * 32, r));
      const f32 amax = largest_over<G, 32>(larger_magnitude<G>(y, G::splat_f32(-1.0f)));
      scale = scale_of_block<G>(amax);
      G::store_bytes(a.q.to + row * a.q.to_stride + block * 32,
                     e4m3_code_of<G, e4m3_form::unclamped>(y * integer_multiplier<G>(scale)), 32);
    }
    G::store_bytes(scales + block / 4 * 512 + block % 4, scale, 1);
  }
}

template <class G>
KVCTS_INLINE void clear_scales(const fused_q_kv_rmsnorm_quant_arguments& a, std::int64_t row) {
  unsigned char* scales = scales_of_row(a, row);
  for (std::int64_t tile = 0; tile < a.tiles; ++tile) {
    G::template store_word<false>(scales + tile * 512, G::splat(0));
  }
}

// Warps: of the launch whose trees the rows have, 4 or 8. Fast: every access aligned, and both rows
// of whole parts.
template <class G, int Warps, bool Fast>
KVCTS_INLINE void quantize_q(const fused_q_kv_rmsnorm_quant_arguments& a, std::int64_t row,
                             profile p) {
  if (row >= a.tokens) {
    clear_scales<G>(a, row);
  } else if constexpr (Fast) {
    quantize_held_q<G, Warps, true>(a, row, p);
  } else if (a.q.norm.whole_parts > 0) {
    quantize_held_q<G, Warps, false>(a, row, p);
  } else {
    quantize_any_q<G>(a, row, p);
  }
}
template <class G, int Warps, bool Fast>
KVCTS_INLINE void normalize_kv(const fused_q_kv_rmsnorm_quant_arguments& a, std::int64_t row,
                               profile p) {
  if (row >= a.tokens) return;
  if constexpr (Fast) {
    rms_norm_held_row<G, Warps, Warps, true>(a.kv, row, p);
  } else if (a.kv.norm.whole_parts > 0) {
    rms_norm_held_row<G, Warps, Warps, false>(a.kv, row, p);
  } else {
    rms_norm_row<G>(a.kv, row, p);
  }
}

}  // namespace kvcts::KVCTS_TARGET
