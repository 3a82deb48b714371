// compute_global_topk_indices_and_lens' arguments as plain data.
#pragma once

#include <cstdint>

#include "optimized/arguments/indices.h"

namespace kvcts {

struct call;

struct compute_global_topk_indices_and_lens_arguments {
  index_matrix topk;              // [tokens, columns]
  const unsigned char* requests;  // [tokens] i32
  index_matrix table;             // [requests, pages]
  const unsigned char* is_valid;  // [tokens] bool
  unsigned char* global;          // [tokens, columns] i32
  unsigned char* lens;            // [tokens] i32
  std::int64_t tokens;
  std::int64_t columns;
  index_divider block;  // entries a page
};

// Of a checked call.
compute_global_topk_indices_and_lens_arguments compute_global_topk_indices_and_lens_of(
    const call& c);
inline std::int64_t compute_global_topk_indices_and_lens_rows(
    const compute_global_topk_indices_and_lens_arguments& a) {
  return a.tokens;
}
inline std::int64_t compute_global_topk_indices_and_lens_row_bytes(
    const compute_global_topk_indices_and_lens_arguments& a) {
  return a.columns * 8;
}

}  // namespace kvcts
