// compute_global_topk_indices_and_lens over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/compute_global_topk_indices_and_lens.h"
#include "optimized/warp/indices.h"

namespace kvcts::KVCTS_TARGET {

template <class G, int Words, bool Aligned>
KVCTS_INLINE void global_topk_row(const compute_global_topk_indices_and_lens_arguments& a,
                                  std::int64_t token) {
  using u32 = typename G::u32;
  const std::int64_t request = G::template load_i32<Aligned>(a.requests + token * 4);
  const unsigned char* pages = a.table.start + request * a.table.row_stride;
  const unsigned char* from = a.topk.start + token * a.topk.row_stride;
  unsigned char* to = a.global + token * a.columns * 4;
  const bool valid = a.is_valid[token] != 0;
  u32 found = G::splat(0);
  make_columns<G, Words, Aligned>(
      to, a.columns,
      [&](auto words, const column_step& at) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        const unsigned char* first = from + at.column * 4 + at.behind * 4;
        if constexpr (n > 1) {
          return G::template load_words<n, 32, Aligned>(first, 0, 1);
        } else {
          return load_columns<G, n, Aligned>(first, a.columns - at.column - at.behind);
        }
      },
      [&](auto words, const column_step& at, auto& ids) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        const std::uint32_t left = columns_left(a.columns - at.column);
        KVCTS_UNROLL for (int j = 0; j < n; ++j) {
          // Columns past the row count for nothing and have no page.
          const u32 entry = n > 1 ? ids.w[j]
                                  : G::select(column_of<G, n>(j) + at.behind < left, ids.w[j],
                                              G::splat(no_index));
          found = found + live_index<G>(entry);
          ids.w[j] = slot_of_entry<G, Aligned, false>(pages, entry, a.block, a.block.size);
        }
      });
  // Tokens that only pad the batch are translated too; their length is 0.
  const std::uint32_t count = total<G>(found);
  store_scalar<G, Aligned>(a.lens + token * 4, valid ? count : 0);
}

}  // namespace kvcts::KVCTS_TARGET
