// build_flashinfer_mixed_sparse_indices over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/build_flashinfer_mixed_sparse_indices.h"
#include "optimized/warp/indices.h"

namespace kvcts::KVCTS_TARGET {

// The first `count` of `columns` indices of a row, each as map(index) says; the others are none.
// Gives the number of those that are not negative.
template <class G, int Words, bool Aligned, class Map>
KVCTS_INLINE std::uint32_t map_columns(unsigned char* to, const unsigned char* from,
                                       std::int64_t columns, std::int64_t count, const Map& map) {
  using u32 = typename G::u32;
  u32 found = G::splat(0);
  over_columns<Words>(columns, [&](auto words, std::int64_t column, std::int64_t left) {
    constexpr int n = decltype(words)::value;
    typename G::template words<n> ids;
    if (column < count) {
      ids = load_columns<G, n, Aligned>(from + column * 4, count - column);
      KVCTS_UNROLL for (int j = 0; j < n; ++j) {
        const u32 index = G::select(column_of<G, n>(j) < columns_left(count - column), ids.w[j],
                                    G::splat(no_index));
        found = found + live_index<G>(index);
        ids.w[j] = map(index);
      }
    } else {
      KVCTS_UNROLL for (int j = 0; j < n; ++j) ids.w[j] = G::splat(no_index);
    }
    store_columns<G, n, Aligned>(to + column * 4, ids, left);
  });
  return total<G>(found);
}

template <class G, int Words, bool Aligned>
KVCTS_INLINE void sparse_decode_row(const build_flashinfer_mixed_sparse_indices_arguments& a,
                                    std::int64_t token) {
  using u32 = typename G::u32;
  unsigned char* row = a.indices + token * (a.window_columns + a.compressed_columns) * 4;
  map_columns<G, Words, Aligned>(row, a.decode_window.start + token * a.decode_window.row_stride,
                                 a.window_columns, a.window_columns, [&](const u32& slot) {
                                   return remapped<G>(slot, a.window_pages.block,
                                                      a.window_pages.span);
                                 });
  const sparse_paging& pages = a.compressed_pages;
  const unsigned char* from = a.decode_compressed.start + token * a.decode_compressed.row_stride;
  row += a.window_columns * 4;
  std::int64_t len = a.decode_columns;
  if (a.decode_is_local) {
    const std::int64_t request = G::template load_i32<Aligned>(a.token_to_request + token * 4);
    const unsigned char* table = pages.table.start + request * pages.table.row_stride;
    const std::uint32_t found = map_columns<G, Words, Aligned>(
        row, from, a.compressed_columns, a.decode_columns, [&](const u32& entry) {
          return slot_of_entry<G, Aligned, true>(table, entry, pages.block, pages.span);
        });
    len = a.decode_columns > 0 && a.decode_is_valid[token] != 0 ? found : 0;
  } else {
    map_columns<G, Words, Aligned>(
        row, from, a.compressed_columns, a.decode_columns,
        [&](const u32& slot) { return remapped<G>(slot, pages.block, pages.span); });
    if (a.decode_lens != nullptr) len = G::template load_i32<Aligned>(a.decode_lens + token * 4);
  }
  store_scalar<G, Aligned>(a.lens + token * 4, a.window_columns + len);
}

template <class G, int Words, bool Aligned>
KVCTS_INLINE void sparse_prefill_row(const build_flashinfer_mixed_sparse_indices_arguments& a,
                                     std::int64_t token) {
  using u32 = typename G::u32;
  const auto at = [](const unsigned char* from, std::int64_t i) {
    return static_cast<std::int64_t>(G::template load_i32<Aligned>(from + i * 4));
  };
  const std::int64_t request = at(a.token_to_request, token);
  // Starts count over the whole batch.
  const std::int64_t position = at(a.seq_lens, request) - at(a.starts, request + 1) + token;
  const std::int64_t replay = at(a.replay_start, request);
  std::int64_t first = position - a.window + 1;
  first = first > 0 ? first : 0;
  first = first > replay ? first : replay;

  unsigned char* row = a.indices + token * (a.window_columns + a.compressed_columns) * 4;
  const std::int64_t live = position - first + 1;  // may be negative
  const unsigned char* table =
      a.window_pages.table.start + request * a.window_pages.table.row_stride;
  over_columns<Words>(a.window_columns, [&](auto words, std::int64_t column, std::int64_t left) {
    constexpr int n = decltype(words)::value;
    typename G::template words<n> ids;
    KVCTS_UNROLL for (int j = 0; j < n; ++j) {
      const u32 c = column_of<G, n>(j);
      const u32 entry =
          G::select(c < columns_left(live - column), c + static_cast<std::uint32_t>(first + column),
                    G::splat(no_index));
      ids.w[j] =
          slot_of_entry<G, Aligned, true>(table, entry, a.window_pages.block, a.window_pages.span);
    }
    store_columns<G, n, Aligned>(row + column * 4, ids, left);
  });

  const std::int64_t topk = compressed_entries(position, a.ratio, a.topk);
  const sparse_paging& pages = a.compressed_pages;
  const unsigned char* compressed_table = pages.table.start + request * pages.table.row_stride;
  map_columns<G, Words, Aligned>(
      row + a.window_columns * 4,
      a.prefill_topk.start + (token - a.decode_tokens) * a.prefill_topk.row_stride,
      a.compressed_columns, topk < a.prefill_columns ? topk : a.prefill_columns,
      [&](const u32& entry) {
        return slot_of_entry<G, Aligned, true>(compressed_table, entry, pages.block, pages.span);
      });
  store_scalar<G, Aligned>(a.lens + token * 4, a.window_columns + topk);
}

}  // namespace kvcts::KVCTS_TARGET
