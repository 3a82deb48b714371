// quantize_and_insert_k_cache over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/quantize_and_insert_k_cache.h"
#include "optimized/kernels/key_record.h"

namespace kvcts::KVCTS_TARGET {

// Rows [row, row + Rows) as far as there are slots. A row is two chunks of 32 lanes.
template <class G, profile P, int Bytes, bool Fnuz, bool Aligned, int Rows>
KVCTS_INLINE void insert_key_rows(const quantize_and_insert_k_cache_arguments& a,
                                  std::int64_t row) {
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
    store_key_record<G, Bytes, Fnuz, Aligned>(to, x[r], x[r][1]);
  }
}

}  // namespace kvcts::KVCTS_TARGET
