// dequantize_and_gather_k_cache's arguments as plain data. Strides are in bytes.
#pragma once

#include <cstdint>

#include "optimized/arguments/indices.h"
#include "optimized/arguments/pages.h"

namespace kvcts {

struct call;

struct dequantize_and_gather_k_cache_arguments {
  unsigned char* out;  // [requests, M, 512] bf16, from row `offset` on
  std::int64_t out_request_stride;
  std::int64_t out_row_stride;
  page_view cache;
  const unsigned char* seq_lens;     // [requests] i32
  const unsigned char* gather_lens;  // the same, or null: all tokens
  index_matrix table;                // [requests, columns] i32
  std::int64_t requests;
  std::int64_t capacity;  // rows that a request may fill: M - offset
  int share_shift;        // a request is done in 2^share_shift shares of consecutive tokens
  int record_bytes;       // 584, 528 or 288
  bool fnuz;
};

// Of a checked call.
dequantize_and_gather_k_cache_arguments dequantize_and_gather_k_cache_of(const call& c);
// A row is a request's share: only the lengths, which lie with the data, tell how many tokens.
inline std::int64_t dequantize_and_gather_k_cache_rows(
    const dequantize_and_gather_k_cache_arguments& a) {
  return a.requests << a.share_shift;
}
inline std::int64_t dequantize_and_gather_k_cache_row_bytes(
    const dequantize_and_gather_k_cache_arguments& a) {
  const std::int64_t tokens = a.capacity < (1 << 20) ? a.capacity : 1 << 20;
  return tokens * 1536 >> a.share_shift;
}

}  // namespace kvcts
