// build_flashinfer_mixed_sparse_indices over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/build_flashinfer_mixed_sparse_indices.h"
#include "optimized/warp/indices.h"

namespace kvcts::KVCTS_TARGET {

// A row's indices in memory: `count` of the first `columns` are looked at.
struct index_source {
  const unsigned char* from;
  std::int64_t columns;
  std::int64_t count;
};

// A row of `columns`: the source's indices as map(index) says, and none behind them. Gives the
// number of those that are not negative.
template <class G, int Words, bool Aligned, int Together = steps_together, class Map>
KVCTS_INLINE std::uint32_t map_columns(unsigned char* to, std::int64_t columns,
                                       const index_source& source, const Map& map) {
  using u32 = typename G::u32;
  u32 found = G::splat(0);
  make_columns<G, Words, Aligned, Together>(
      to, columns,
      [&](auto words, const column_step& at) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        typename G::template words<n> ids = {};
        if (at.behind < columns_left(source.count - at.column)) {
          ids = load_columns<G, n, Aligned>(source.from + at.column * 4 + at.behind * 4,
                                            source.columns - at.column - at.behind);
        }
        return ids;
      },
      [&](auto words, const column_step& at, auto& ids) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        const std::uint32_t count = columns_left(source.count - at.column);
        KVCTS_UNROLL for (int j = 0; j < n; ++j) {
          const u32 index =
              G::select(column_of<G, n>(j) + at.behind < count, ids.w[j], G::splat(no_index));
          found = found + live_index<G>(index);
          ids.w[j] = map(index);
        }
      });
  return total<G>(found);
}

template <class G, int Words, bool Aligned, int Together = steps_together>
KVCTS_INLINE void sparse_decode_window(const build_flashinfer_mixed_sparse_indices_arguments& a,
                                       std::int64_t token, unsigned char* row) {
  using u32 = typename G::u32;
  const index_source source = {a.decode_window.start + token * a.decode_window.row_stride,
                               a.window_columns, a.window_columns};
  map_columns<G, Words, Aligned, Together>(
      row, a.window_columns, source, [&](const u32& slot) KVCTS_INLINE_LAMBDA {
        return remapped<G>(slot, a.window_pages.block, a.window_pages.span);
      });
}
template <class G, int Words, bool Aligned>
KVCTS_INLINE void sparse_decode_compressed(const build_flashinfer_mixed_sparse_indices_arguments& a,
                                           std::int64_t token, unsigned char* row) {
  using u32 = typename G::u32;
  const sparse_paging& pages = a.compressed_pages;
  const index_source source = {a.decode_compressed.start + token * a.decode_compressed.row_stride,
                               a.decode_columns, a.decode_columns};
  std::int64_t len = a.decode_columns;
  if (a.decode_is_local) {
    const std::int64_t request = G::template load_i32<Aligned>(a.token_to_request + token * 4);
    const bool valid = a.decode_columns > 0 && a.decode_is_valid[token] != 0;
    const unsigned char* table = pages.table.start + request * pages.table.row_stride;
    const std::uint32_t found = map_columns<G, Words, Aligned>(
        row, a.compressed_columns, source, [&](const u32& entry) KVCTS_INLINE_LAMBDA {
          return slot_of_entry<G, Aligned, true>(table, entry, pages.block, pages.span);
        });
    len = valid ? found : 0;
  } else {
    if (a.decode_lens != nullptr) len = G::template load_i32<Aligned>(a.decode_lens + token * 4);
    map_columns<G, Words, Aligned>(row, a.compressed_columns, source,
                                   [&](const u32& slot) KVCTS_INLINE_LAMBDA {
                                     return remapped<G>(slot, pages.block, pages.span);
                                   });
  }
  store_scalar<G, Aligned>(a.lens + token * 4, a.window_columns + len);
}

struct prefill_token {
  std::int32_t request;
  std::int32_t replay;  // the first position the window may have
  std::int64_t position;
  std::int64_t topk;  // compressed entries
};
template <class G, bool Aligned>
KVCTS_INLINE prefill_token
prefill_token_of(const build_flashinfer_mixed_sparse_indices_arguments& a, std::int64_t token) {
  const auto at = [](const unsigned char* from, std::int64_t i) {
    return G::template load_i32<Aligned>(from + i * 4);
  };
  const std::int32_t request = at(a.token_to_request, token);
  // Starts count over the whole batch.
  const std::int64_t position =
      token + at(a.seq_lens, request) - at(a.starts, std::int64_t{request} + 1);
  return {request, at(a.replay_start, request), position,
          compressed_entries(position, a.ratio, a.topk)};
}

template <class G, int Words, bool Aligned, int Together = steps_together>
KVCTS_INLINE void sparse_prefill_window(const build_flashinfer_mixed_sparse_indices_arguments& a,
                                        const prefill_token& token, unsigned char* row) {
  using u32 = typename G::u32;
  const std::int64_t position = token.position;
  std::int64_t first = position - a.window + 1;
  first = first > 0 ? first : 0;
  first = first > token.replay ? first : token.replay;
  const std::int64_t live = position - first + 1;  // may be negative
  const sparse_paging& pages = a.window_pages;
  const unsigned char* table = pages.table.start + token.request * pages.table.row_stride;
  make_columns<G, Words, Aligned, Together>(
      row, a.window_columns,
      [](auto words, const column_step& /*at*/)
          KVCTS_INLINE_LAMBDA { return typename G::template words<decltype(words)::value>{}; },
      [&](auto words, const column_step& at, auto& ids) KVCTS_INLINE_LAMBDA {
        constexpr int n = decltype(words)::value;
        const std::uint32_t left = columns_left(live - at.column);
        KVCTS_UNROLL for (int j = 0; j < n; ++j) {
          const u32 c = column_of<G, n>(j) + at.behind;
          const u32 entry = G::select(c < left, c + static_cast<std::uint32_t>(first + at.column),
                                      G::splat(no_index));
          ids.w[j] = slot_of_entry<G, Aligned, true>(table, entry, pages.block, pages.span);
        }
      });
}
template <class G, int Words, bool Aligned>
KVCTS_INLINE void sparse_prefill_compressed(
    const build_flashinfer_mixed_sparse_indices_arguments& a, std::int64_t token,
    const prefill_token& of, unsigned char* row) {
  using u32 = typename G::u32;
  const sparse_paging& pages = a.compressed_pages;
  const unsigned char* table = pages.table.start + of.request * pages.table.row_stride;
  const index_source source = {
      a.prefill_topk.start + (token - a.decode_tokens) * a.prefill_topk.row_stride,
      a.prefill_columns, of.topk < a.prefill_columns ? of.topk : a.prefill_columns};
  map_columns<G, Words, Aligned>(
      row, a.compressed_columns, source, [&](const u32& entry) KVCTS_INLINE_LAMBDA {
        return slot_of_entry<G, Aligned, true>(table, entry, pages.block, pages.span);
      });
  store_scalar<G, Aligned>(a.lens + token * 4, a.window_columns + of.topk);
}

template <class G, int Words, bool Aligned>
KVCTS_INLINE void sparse_row(const build_flashinfer_mixed_sparse_indices_arguments& a,
                             std::int64_t token) {
  unsigned char* row = a.indices + token * (a.window_columns + a.compressed_columns) * 4;
  unsigned char* behind = row + a.window_columns * 4;
  if (token < a.decode_tokens) {
    sparse_decode_window<G, Words, Aligned>(a, token, row);
    sparse_decode_compressed<G, Words, Aligned>(a, token, behind);
  } else {
    const prefill_token of = prefill_token_of<G, Aligned>(a, token);
    sparse_prefill_window<G, Words, Aligned>(a, of, row);
    sparse_prefill_compressed<G, Words, Aligned>(a, token, of, behind);
  }
}

}  // namespace kvcts::KVCTS_TARGET
