// The fused prologues over the group vocabulary: the RMSNorms of q and of kv, kv's insert, and (of
// key_insert.h) the key's insert and the top-k fill. They are tasks that need nothing of each
// other.
#pragma once

#include "optimized/arguments/prologue.h"
#include "optimized/kernels/key_insert.h"

namespace kvcts::KVCTS_TARGET {

// Fast: every access aligned, and whole parts.
template <class G, bool Fast>
KVCTS_INLINE void normalize_q(const prologue_arguments& a, std::int64_t token, profile p) {
  if constexpr (Fast) {
    rms_norm_held_row<G, 8, 4, true>(a.q, token, p);
  } else if (a.q.norm.whole_parts > 0) {
    rms_norm_held_row<G, 8, 4, false>(a.q, token, p);
  } else {
    rms_norm_row<G>(a.q, token, p);
  }
}

// Entry of a token, 128 dims a tile. f32 scales lie inside.
struct mla_entry {
  unsigned char* start;  // null: not inserted
  static constexpr int scales_at = 512;
  static constexpr int rope_at = 528;
};
template <class G, bool Aligned>
KVCTS_INLINE mla_entry mla_entry_of(const mla_rows& a, std::int64_t token) {
  if (token >= a.rows) return {nullptr};
  const std::int64_t slot = G::template load_i64<Aligned>(a.slots + 8 * token);
  if (slot < 0) return {nullptr};
  const std::int64_t page = page_of_slot(a.cache, slot);
  const std::int64_t position = slot - page * a.cache.block_size;
  return {a.cache.start + page * a.cache.page_stride + position * a.entry_stride};
}

template <class G, bool Aligned, bool Fnuz>
KVCTS_INLINE void store_codes(unsigned char* to, const row_part<G, 4>& y) {
  constexpr e4m3_form form = Fnuz ? e4m3_form::fnuz_unclamped : e4m3_form::unclamped;
  const typename G::u32 codes = e4m3_word<G, form>(y.v[0], y.v[1], y.v[2], y.v[3]);
  G::template store_words<1, 32, Aligned>(to, 0, 1, {{codes}});
}

// Tile i of an entry from the normalized f32, 4 a lane.
template <class G, bool Aligned>
KVCTS_INLINE void insert_tile(const mla_rows& a, const mla_entry& entry, int i, row_part<G, 4> y,
                              profile p) {
  using f32 = typename G::f32;
  f32 amax = G::splat_f32(0.0f);
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) amax = larger_magnitude<G>(y.v[j], amax);
  // RN(1/224) and RN(1/448)
  const f32 ratio = largest_over<G, 32>(amax) * (a.fnuz ? 0x1.24924ap-8f : 0x1.24924ap-9f);
  f32 scale;
  if (a.pow2_scales) {
    const f32 floored = G::larger(ratio, G::as_f32(G::splat(0x38D1B717u)));  // 1e-4
    const typename G::u32 biased = ceil_log2_biased<G>(floored);
    scale = power_of_biased<G>(biased);
    // The division by a power of two is exact, or its code 0.
    const f32 factor = inverse_power_of_biased<G>(biased);
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) y.v[j] = y.v[j] * factor;
  } else {
    scale = G::larger(ratio, G::splat_f32(0x1p-126f));
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      y.v[j] = p == profile::nvidia ? div_uniform<profile::nvidia>(y.v[j], scale)
                                    : div_uniform<profile::ieee>(y.v[j], scale);
    }
  }
  if (a.fnuz) {
    store_codes<G, Aligned, true>(entry.start + i * 128, y);
  } else {
    store_codes<G, Aligned, false>(entry.start + i * 128, y);
  }
  G::template store_word<Aligned>(entry.start + mla_entry::scales_at + 4 * i, G::bits(scale));
}

// 512 dims in parts of 128, which are the tiles.
template <class G, bool Aligned>
KVCTS_INLINE void normalize_kv(const prologue_arguments& a, std::int64_t token, profile p) {
  constexpr int parts = 4;
  const auto row = load_row<G, 4, parts, Aligned>(a.kv.from + token * a.kv.from_stride, parts);
  const mla_entry entry = mla_entry_of<G, Aligned>(a.mla, token);
  const float r = reciprocal_root(sum_of_squares<G, 4, parts, 4>(row, parts), a.kv.norm, p);
  unsigned char* to = a.kv.to + token * a.kv.to_stride;
  KVCTS_DEVICE_UNROLL for (int i = 0; i < parts; ++i) {
    const auto y = rms_normed_part<G, 4, Aligned>(row.part[i], a.kv.weight, i * 128, r);
    store_bf16_part<G, 4, Aligned>(to + i * 256, y);
    if (entry.start != nullptr) insert_tile<G, Aligned>(a.mla, entry, i, y, p);
  }
  if (entry.start == nullptr) return;
  G::template store_words<1, 32, Aligned>(
      entry.start + mla_entry::rope_at, 0, 1,
      G::template load_words<1, 32, Aligned>(a.mla.k_pe + token * a.mla.k_pe_stride, 0, 1));
}

}  // namespace kvcts::KVCTS_TARGET
