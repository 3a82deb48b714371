// fused_q_kv_rmsnorm_quant's arguments as plain data.
#pragma once

#include "optimized/arguments/norms.h"

namespace kvcts {

struct call;

struct fused_q_kv_rmsnorm_quant_arguments {
  norm_rows q;            // to E4M3
  norm_rows kv;           // to bf16
  unsigned char* scales;  // UE8M0 in tiles of 128 rows by 4 blocks of 32 dims
  std::int64_t tokens;
  std::int64_t scale_rows;  // tokens up to a multiple of 128
  std::int64_t blocks;      // of a q row
  std::int64_t tiles;       // of a q row, the last may be filled up
};

// Of a checked call.
fused_q_kv_rmsnorm_quant_arguments fused_q_kv_rmsnorm_quant_of(const call& c);
// Rows behind the tokens are of scales alone.
inline std::int64_t fused_q_kv_rmsnorm_quant_rows(const fused_q_kv_rmsnorm_quant_arguments& a) {
  return a.scale_rows;
}
inline std::int64_t fused_q_kv_rmsnorm_quant_row_bytes(
    const fused_q_kv_rmsnorm_quant_arguments& a) {
  return (a.q.norm.dims + a.kv.norm.dims) * 8;
}

}  // namespace kvcts
