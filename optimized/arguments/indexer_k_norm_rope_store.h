// indexer_k_norm_rope_store's arguments as plain data. Strides are in bytes.
#pragma once

#include "optimized/arguments/pages.h"
#include "optimized/arguments/rope.h"

namespace kvcts {

struct call;

struct indexer_k_norm_rope_store_arguments {
  const unsigned char* k;  // [rows, 128] bf16
  std::int64_t k_row_stride;
  group_rows_view at;
  cos_sin_view table;           // 64 dims
  const unsigned char* weight;  // [128] bf16 or f32
  page_view cache;              // records of 68 or 132 bytes
  float eps;
  bool weight_is_f32;
  bool mxfp4;  // 68 bytes
  bool tiled;  // 132 bytes: values in tiles of 16 tokens x 16 dims
};

// Of a checked call.
indexer_k_norm_rope_store_arguments indexer_k_norm_rope_store_of(const call& c);
inline std::int64_t indexer_k_norm_rope_store_rows(const indexer_k_norm_rope_store_arguments& a) {
  return a.at.rows;
}
inline std::int64_t indexer_k_norm_rope_store_row_bytes(
    const indexer_k_norm_rope_store_arguments&) {
  return 512;
}

}  // namespace kvcts
