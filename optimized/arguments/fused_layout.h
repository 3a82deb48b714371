// fused_layout's arguments as plain data.
#pragma once

#include <cstdint>

namespace kvcts {

struct call;

// Rows that stay together are a unit: 16 of op q, 32 of o, 1 of o_chunk. Each period of x holds
// units [heads, chunks], of y [chunks, heads].
struct fused_layout_arguments {
  const unsigned char* x;
  unsigned char* y;
  std::int64_t unit_bytes;
  std::int64_t units;  // in all
  std::int64_t heads;
  std::int64_t chunks;
};

// Of a checked call.
fused_layout_arguments fused_layout_of(const call& c);
inline std::int64_t fused_layout_rows(const fused_layout_arguments& a) { return a.units; }
inline std::int64_t fused_layout_row_bytes(const fused_layout_arguments& a) {
  return a.unit_bytes * 2;
}

}  // namespace kvcts
