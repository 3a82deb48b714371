// build_flashinfer_mixed_sparse_indices' arguments as plain data.
#pragma once

#include <cstdint>

#include "optimized/arguments/indices.h"

namespace kvcts {

struct call;

// A paged KV: a page takes `span` ids, of which block.size are entries.
struct sparse_paging {
  index_matrix table;  // [requests, pages]
  index_divider block;
  std::uint32_t span;
};

struct build_flashinfer_mixed_sparse_indices_arguments {
  index_matrix decode_window;             // [decode_tokens, window_columns]
  index_matrix decode_compressed;         // [decode_tokens, decode_columns]; may be absent
  const unsigned char* decode_lens;       // [decode_tokens] i32, or null
  const unsigned char* decode_is_valid;   // [decode_tokens] bool, or null
  index_matrix prefill_topk;              // [tokens - decode_tokens, prefill_columns]
  const unsigned char* starts;            // [requests + 1] i32
  const unsigned char* seq_lens;          // [requests] i32
  const unsigned char* token_to_request;  // [tokens] i32
  const unsigned char* replay_start;      // [requests] i32
  sparse_paging window_pages;
  sparse_paging compressed_pages;
  unsigned char* indices;  // [tokens, window_columns + compressed_columns] i32
  unsigned char* lens;     // [tokens] i32
  std::int64_t tokens;     // the decode tokens come first
  std::int64_t decode_tokens;
  std::int64_t window_columns;
  std::int64_t compressed_columns;  // a multiple of 4
  std::int64_t decode_columns;      // 0 where decode_compressed is absent
  std::int64_t prefill_columns;
  std::int64_t window;
  std::int64_t ratio;
  std::int64_t topk;
  bool decode_is_local;  // decode_compressed holds entries of the request, not slots
};

// Of a checked call.
build_flashinfer_mixed_sparse_indices_arguments build_flashinfer_mixed_sparse_indices_of(
    const call& c);
inline std::int64_t build_flashinfer_mixed_sparse_indices_rows(
    const build_flashinfer_mixed_sparse_indices_arguments& a) {
  return a.tokens;
}
inline std::int64_t build_flashinfer_mixed_sparse_indices_row_bytes(
    const build_flashinfer_mixed_sparse_indices_arguments& a) {
  return (a.window_columns + a.compressed_columns) * 8;
}

}  // namespace kvcts
