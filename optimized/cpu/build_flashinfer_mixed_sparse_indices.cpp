#include "optimized/kernels/build_flashinfer_mixed_sparse_indices.h"

#include "optimized/cpu/index_rows.h"
#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

using arguments = build_flashinfer_mixed_sparse_indices_arguments;

// The slots of positions [first, first + count) of a request, page by page.
static void slots_of_window(byte* to, const sparse_paging& pages, std::int64_t request,
                            std::int64_t first, std::int64_t count) {
  const byte* table = pages.table.start + request * pages.table.row_stride;
  const std::int64_t size = pages.block.size;
  std::int64_t column = first / size;
  std::int64_t place = first - column * size;
  while (count > 0) {
    const std::int64_t here = size - place < count ? size - place : count;
    const std::int32_t page = group::load_i32<false>(table + column * 4);
    if (page < 0) {
      fill_none(to, here);
    } else {
      count_up(to, here,
               static_cast<std::uint32_t>(page) * pages.span + static_cast<std::uint32_t>(place));
    }
    to += here * 4;
    count -= here;
    ++column;
    place = 0;
  }
}

// A row of `columns`: the source's indices as make(to, from, count) writes them, and none behind.
// Gives what `make` gives, the number of those that are not negative.
template <class Make>
KVCTS_INLINE std::uint32_t make_row(byte* to, std::int64_t columns, const index_source& source,
                                    const Make& make) {
  std::int64_t count = source.count < columns ? source.count : columns;
  count = count > 0 ? count : 0;
  const std::uint32_t found = make(to, source.from, count);
  fill_none(to + count * 4, columns - count);
  return found;
}
// Entries of a request.
KVCTS_INLINE std::uint32_t map_entries(byte* to, std::int64_t columns, const index_source& source,
                                       const sparse_paging& pages, std::int64_t request) {
  const byte* table = pages.table.start + request * pages.table.row_stride;
  std::uint32_t found = 0;
  with_divider(pages.block, [&](auto power_of_two) KVCTS_INLINE_LAMBDA {
    found = make_row(to, columns, source,
                     [&](byte* row, const byte* from, std::int64_t count) KVCTS_INLINE_LAMBDA {
                       return entry_slots<true, decltype(power_of_two)::value>(
                           row, from, count, table, pages.block, pages.span);
                     });
  });
  return found;
}
KVCTS_INLINE void map_slots(byte* to, std::int64_t columns, const index_source& source,
                            const sparse_paging& pages) {
  with_divider(pages.block, [&](auto power_of_two) KVCTS_INLINE_LAMBDA {
    make_row(to, columns, source,
             [&](byte* row, const byte* from, std::int64_t count) KVCTS_INLINE_LAMBDA {
               return map_indices(row, from, count, [&](const lane_u32& slot) KVCTS_INLINE_LAMBDA {
                 return remapped<group, decltype(power_of_two)::value>(slot, pages.block,
                                                                       pages.span);
               });
             });
  });
}

static void decode_row(const arguments& a, std::int64_t token, byte* row) {
  const index_source window = {a.decode_window.start + token * a.decode_window.row_stride,
                               a.window_columns, a.window_columns};
  map_slots(row, a.window_columns, window, a.window_pages);
  const index_source compressed = {
      a.decode_compressed.start + token * a.decode_compressed.row_stride, a.decode_columns,
      a.decode_columns};
  byte* behind = row + a.window_columns * 4;
  std::int64_t len = a.decode_columns;
  if (a.decode_is_local) {
    const std::int64_t request = group::load_i32<false>(a.token_to_request + token * 4);
    const std::uint32_t found =
        map_entries(behind, a.compressed_columns, compressed, a.compressed_pages, request);
    len = a.decode_columns > 0 && a.decode_is_valid[token] != 0 ? found : 0;
  } else {
    if (a.decode_lens != nullptr) len = group::load_i32<false>(a.decode_lens + token * 4);
    map_slots(behind, a.compressed_columns, compressed, a.compressed_pages);
  }
  store_scalar<group, false>(a.lens + token * 4, a.window_columns + len);
}

static void prefill_row(const arguments& a, std::int64_t token, byte* row) {
  const prefill_token of = prefill_token_of<group, false>(a, token);
  std::int64_t first = of.position - a.window + 1;
  first = first > 0 ? first : 0;
  first = first > of.replay ? first : of.replay;
  std::int64_t live = of.position - first + 1;
  live = live < a.window_columns ? live : a.window_columns;
  live = live > 0 ? live : 0;
  slots_of_window(row, a.window_pages, of.request, first, live);
  fill_none(row + live * 4, a.window_columns - live);
  const index_source compressed = {
      a.prefill_topk.start + (token - a.decode_tokens) * a.prefill_topk.row_stride,
      a.prefill_columns, of.topk < a.prefill_columns ? of.topk : a.prefill_columns};
  map_entries(row + a.window_columns * 4, a.compressed_columns, compressed, a.compressed_pages,
              of.request);
  store_scalar<group, false>(a.lens + token * 4, a.window_columns + of.topk);
}

void build_flashinfer_mixed_sparse_indices(const arguments& a, profile /*p*/, std::int64_t first,
                                           std::int64_t last) {
  for (std::int64_t token = first; token < last; ++token) {
    byte* row = a.indices + token * (a.window_columns + a.compressed_columns) * 4;
    if (token < a.decode_tokens) {
      decode_row(a, token, row);
    } else {
      prefill_row(a, token, row);
    }
  }
}

}  // namespace kvcts::KVCTS_TARGET
