// A key of 512 dims as one of the records of 584 or 528 bytes.
#pragma once

#include "optimized/warp/bf16_scales.h"
#include "optimized/warp/group.h"
#include "optimized/warp/pages.h"

namespace kvcts::KVCTS_TARGET {

template <int Bytes>
struct key_record {
  static_assert(Bytes == 584 || Bytes == 528);
  static constexpr bool has_tail = Bytes == 584;  // the last 64 dims stay bf16
  static constexpr int scale_bytes = has_tail ? 8 : 16;
  static constexpr int data_bytes = Bytes - scale_bytes;
  static constexpr int lanes_per_block = has_tail ? 8 : 4;  // 64 or 32 dims
};

// x: two chunks of 32 lanes, 8 dims a lane. tail: lanes 24..31 hold the bf16 dims of a tail.
template <class G, int Bytes, bool Fnuz, bool Aligned>
KVCTS_INLINE void store_key_record(const record_place& to, const typename G::bf16x8 (&x)[2],
                                   const typename G::bf16x8& tail) {
  using u32 = typename G::u32;
  using record = key_record<Bytes>;
  u32 scales[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    const u32 amax = G::template amax<record::lanes_per_block>(x[half], key_amax_floor);
    scales[half] = key_scale<G, Fnuz>(amax);
    u32 lo;
    u32 hi;
    G::encode_e4m3(x[half], key_factor<G, Fnuz>(scales[half]), lo, hi);
    if constexpr (Fnuz) {
      lo = without_negative_zero<G>(lo);
      hi = without_negative_zero<G>(hi);
    }
    if (record::has_tail && half == 1) {
      // The byte behind the seven scales is a pad.
      G::template store_pairs<24, Aligned>(to.data + 256, lo, hi);
      G::template store_raw<24, Aligned>(to.data + 448, tail);
      scales[half] = G::select(G::lane() < 24u, scales[half], G::splat(0));
    } else {
      G::template store_pairs<32, Aligned>(to.data + half * 256, lo, hi);
    }
  }
  G::template store_block_bytes<record::lanes_per_block>(to.scales, scales, record::scale_bytes);
}

}  // namespace kvcts::KVCTS_TARGET
