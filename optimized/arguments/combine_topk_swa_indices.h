// combine_topk_swa_indices' arguments as plain data.
#pragma once

#include <cstdint>

#include "optimized/arguments/indices.h"

namespace kvcts {

struct call;

struct combine_topk_swa_indices_arguments {
  index_matrix topk;                 // [tokens, topk_columns]
  const unsigned char* starts;       // [requests + 1] i32, never falling
  const unsigned char* seq_lens;     // [requests] i32
  const unsigned char* gather_lens;  // [requests] i32
  unsigned char* combined;           // [tokens, columns] i32
  unsigned char* lens;               // [tokens] i32
  std::int64_t tokens;
  std::int64_t requests;
  std::int64_t columns;  // a multiple of 128
  std::int64_t
      topk_columns;  // of topk_indices; at least most_topk where there are compressed entries
  std::int64_t window;
  std::int64_t ratio;       // 0: no compressed entries
  std::int64_t most_topk;   // of a token
  std::int64_t gathered;    // M, rows of a request
  std::int64_t compressed;  // N, those before the window's
};

// Of a checked call.
combine_topk_swa_indices_arguments combine_topk_swa_indices_of(const call& c);
inline std::int64_t combine_topk_swa_indices_rows(const combine_topk_swa_indices_arguments& a) {
  return a.tokens;
}
inline std::int64_t combine_topk_swa_indices_row_bytes(
    const combine_topk_swa_indices_arguments& a) {
  return a.columns * 8;
}

}  // namespace kvcts
