// combine_topk_swa_indices over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/combine_topk_swa_indices.h"
#include "optimized/warp/indices.h"

namespace kvcts::KVCTS_TARGET {

// What a token's row holds: compressed entries, then ids of the window that count up, then none.
struct combined_row {
  std::int64_t topk;           // columns of compressed entries
  std::int64_t columns;        // in use, the window's included
  std::uint32_t first;         // id of the request's first gathered row
  std::uint32_t first_window;  // id in column 0, did the window begin there
};

template <class G, bool Aligned>
KVCTS_INLINE combined_row combined_row_of(const combine_topk_swa_indices_arguments& a,
                                          std::int64_t token) {
  const auto at = [](const unsigned char* from, std::int64_t i) {
    return static_cast<std::int64_t>(G::template load_i32<Aligned>(from + i * 4));
  };
  // Starts count from the first one's. The last request that starts at the token or before it is
  // its own: empty ones come before.
  const std::int64_t absolute = token + at(a.starts, 0);
  const std::int64_t request =
      G::template count_not_above<Aligned>(a.starts, a.requests + 1, absolute) - 1;
  if (request >= a.requests) return {0, 0, 0, 0};  // past the last request
  const std::int64_t seq_len = at(a.seq_lens, request);
  const std::int64_t position = seq_len - at(a.starts, request + 1) + absolute;
  std::int64_t topk = compressed_entries(position, a.ratio, a.most_topk);
  topk = topk < a.topk_columns ? topk : a.topk_columns;
  topk = topk > 0 ? topk : 0;
  const std::int64_t gather_start = seq_len - at(a.gather_lens, request);
  std::int64_t start = position - a.window + 1;
  start = start > 0 ? start : 0;
  start = start > gather_start ? start : gather_start;
  const std::int64_t live = position - start + 1;
  const std::int64_t first = a.gathered * request;
  return {topk, topk + (live > 0 ? live : 0), static_cast<std::uint32_t>(first),
          static_cast<std::uint32_t>(first + a.compressed + start - gather_start - topk)};
}

template <class G, int Words, bool Aligned>
KVCTS_INLINE void combine_row(const combine_topk_swa_indices_arguments& a, std::int64_t token) {
  using u32 = typename G::u32;
  const combined_row row = combined_row_of<G, Aligned>(a, token);
  const unsigned char* from = a.topk.start + token * a.topk.row_stride;
  unsigned char* to = a.combined + token * a.columns * 4;
  const auto compressed = static_cast<std::uint32_t>(a.compressed);
  make_columns<G, Words, Aligned>(
      to, a.columns,
      [&](auto words, const column_step& at) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        typename G::template words<n> ids = {};
        if (at.behind < columns_left(row.topk - at.column)) {
          ids = load_columns<G, n, Aligned>(from + at.column * 4 + at.behind * 4,
                                            a.topk_columns - at.column - at.behind);
        }
        return ids;
      },
      [&](auto words, const column_step& at, auto& ids) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        const std::uint32_t topk = columns_left(row.topk - at.column);
        const std::uint32_t used = columns_left(row.columns - at.column);
        const std::uint32_t window = row.first_window + static_cast<std::uint32_t>(at.column);
        KVCTS_UNROLL for (int j = 0; j < n; ++j) {
          const u32 c = column_of<G, n>(j) + at.behind;
          // Negative entries are above every N.
          const u32 id = G::select(ids.w[j] < compressed, ids.w[j] + row.first, G::splat(no_index));
          ids.w[j] = G::select(c < topk, id, G::select(c < used, c + window, G::splat(no_index)));
        }
      });
  store_scalar<G, Aligned>(a.lens + token * 4, row.columns);
}

}  // namespace kvcts::KVCTS_TARGET
