// quantize_and_insert_k_cache's arguments as plain data. Strides are in bytes.
#pragma once

#include <cstdint>

#include "optimized/arguments/pages.h"

namespace kvcts {

struct call;

struct quantize_and_insert_k_cache_arguments {
  const unsigned char* k;  // [rows, 512] bf16
  std::int64_t k_row_stride;
  const unsigned char* slots;  // [rows] i64
  std::int64_t rows;
  page_view cache;
  int bytes_per_token;  // 584 or 528
  bool fnuz;
};

// Of a checked call.
quantize_and_insert_k_cache_arguments quantize_and_insert_k_cache_of(const call& c);
inline std::int64_t quantize_and_insert_k_cache_rows(
    const quantize_and_insert_k_cache_arguments& a) {
  return a.rows;
}
inline std::int64_t quantize_and_insert_k_cache_row_bytes(
    const quantize_and_insert_k_cache_arguments&) {
  return 1024;
}

}  // namespace kvcts
