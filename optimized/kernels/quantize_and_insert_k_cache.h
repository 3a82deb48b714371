// quantize_and_insert_k_cache over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/quantize_and_insert_k_cache.h"
#include "optimized/warp/group.h"
#include "optimized/warp/pages.h"

namespace kvcts::KVCTS_TARGET {

// A record of 584 or 528 bytes.
template <int Bytes>
struct key_record {
  static_assert(Bytes == 584 || Bytes == 528);
  static constexpr bool has_tail = Bytes == 584;  // the last 64 dims stay bf16
  static constexpr int scale_bytes = has_tail ? 8 : 16;
  static constexpr int data_bytes = Bytes - scale_bytes;
  static constexpr int lanes_per_block = has_tail ? 8 : 4;  // 64 or 32 dims
};

// UE8M0 byte of a block whose amax has the bits f * 2^e: the exponent of amax/448 is e - 8 up to
// f = 1.75 and e - 7 above, for a bf16 amax in every way to divide; FNUZ divides by 224. Infinity
// has byte 255. The floor 1e-4 is no bf16, but 0x38D1, just below it, has the same exponent.
constexpr std::uint32_t key_amax_floor = 0x38D1;
template <class G, bool Fnuz>
KVCTS_INLINE typename G::u32 key_scale(const typename G::u32& amax) {
  return G::select(amax > 0x7F7Fu, G::splat(255), ((amax + 0x1Fu) >> 7) - (Fnuz ? 7u : 8u));
}

// 2^-exponent, and 0 for an infinite scale. Exponents end at 121, so that the profiles agree: both
// have 2^n as it is from -126 on. An FNUZ code is the OCP code of twice the value.
template <class G, profile P, bool Fnuz>
KVCTS_INLINE typename G::f32 key_factor(const typename G::u32& scale) {
  return G::as_f32(
      G::select(scale > 254u, G::splat(0), (G::splat(Fnuz ? 255 : 254) - scale) << 23));
}

// Rows [row, row + Rows) as far as there are slots. A row is two chunks of 32 lanes.
template <class G, profile P, int Bytes, bool Fnuz, bool Aligned, int Rows>
KVCTS_INLINE void insert_key_rows(const quantize_and_insert_k_cache_arguments& a,
                                  std::int64_t row) {
  using u32 = typename G::u32;
  using record = key_record<Bytes>;
  typename G::bf16x8 x[Rows][2];
  std::int64_t slots[Rows];
  KVCTS_UNROLL for (int r = 0; r < Rows; ++r) {
    slots[r] = row + r < a.rows ? G::template load_i64<Aligned>(a.slots + (row + r) * 8) : -1;
    const unsigned char* from = a.k + (row + r) * a.k_row_stride;
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      x[r][half] =
          G::template load_words<4, 32, Aligned>(from + half * 512, 0, row + r < a.rows ? 1 : 0);
    }
  }
  KVCTS_UNROLL for (int r = 0; r < Rows; ++r) {
    const std::int64_t slot = slots[r];
    if (slot < 0) continue;
    const record_place to = place_of_slot(a.cache, slot, record::data_bytes, record::scale_bytes);
    u32 scales[2];
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      const u32 amax = G::template amax<record::lanes_per_block>(x[r][half], key_amax_floor);
      scales[half] = key_scale<G, Fnuz>(amax);
      u32 lo;
      u32 hi;
      G::encode_e4m3(x[r][half], key_factor<G, P, Fnuz>(scales[half]), lo, hi);
      if constexpr (Fnuz) {
        lo = without_negative_zero<G>(lo);
        hi = without_negative_zero<G>(hi);
      }
      if (record::has_tail && half == 1) {
        // Lanes 24..31 hold the tail; the byte behind the seven scales is a pad.
        G::template store_pairs<24, Aligned>(to.data + 256, lo, hi);
        G::template store_raw<24, Aligned>(to.data + 448, x[r][half]);
        scales[half] = G::select(G::lane() < 24u, scales[half], G::splat(0));
      } else {
        G::template store_pairs<32, Aligned>(to.data + half * 256, lo, hi);
      }
    }
    G::template store_block_bytes<record::lanes_per_block>(to.scales, scales, record::scale_bytes);
  }
}

}  // namespace kvcts::KVCTS_TARGET
