// The arguments that kernels which insert indexer keys share, as plain data. Strides are in bytes.
#pragma once

#include <cstdint>

#include "optimized/arguments/norms.h"
#include "optimized/arguments/pages.h"

namespace kvcts {

struct call;

struct topk_rows {
  unsigned char* start;  // [rows, columns] i32
  std::int64_t row_stride;
  std::int64_t columns;
};
topk_rows topk_rows_of(const tensor_view& buffer);

struct indexer_keys {
  const unsigned char* k;  // [rows, dims] bf16
  std::int64_t k_row_stride;
  const unsigned char* slots;  // i64
  std::int64_t rows;           // that have a slot; none where the cache or the mapping is absent
  page_view cache;
  norm_vector weight;
  norm_vector bias;
  row_norm norm;
  bool fnuz;  // of the E4M3 codes
};

// A standalone insert.
struct key_insert_arguments {
  indexer_keys keys;
  topk_rows topk;
  std::int64_t tokens;
};
// Of a checked call.
key_insert_arguments key_insert_of(const call& c);
inline std::int64_t key_insert_rows(const key_insert_arguments& a) { return a.tokens; }
inline std::int64_t key_insert_row_bytes(const key_insert_arguments& a) {
  return a.keys.norm.dims * 8 + a.topk.columns * 4;
}

bool fp8_is_fnuz(const call& c);

}  // namespace kvcts
