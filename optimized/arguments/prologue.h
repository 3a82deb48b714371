// The arguments of the fused prologues, as plain data. Strides are in bytes.
#pragma once

#include "optimized/arguments/key_insert.h"

namespace kvcts {

// fp8_ds_mla entries of 656 bytes: 512 E4M3, four f32 scales, 64 bf16.
struct mla_rows {
  page_view cache;
  std::int64_t entry_stride;
  const unsigned char* slots;  // i64
  std::int64_t rows;           // that have a slot; none where the cache or the mapping is absent
  const unsigned char* k_pe;   // [rows, 64] bf16
  std::int64_t k_pe_stride;
  bool pow2_scales;
  bool fnuz;
};

struct prologue_arguments {
  std::int64_t tokens;
  norm_rows q;   // [tokens, Q]
  norm_rows kv;  // [tokens, 512]
  mla_rows mla;
  indexer_keys keys;
  topk_rows topk;
};
// Of a checked call.
prologue_arguments prologue_of(const call& c);
inline std::int64_t prologue_rows(const prologue_arguments& a) { return a.tokens; }
inline std::int64_t prologue_row_bytes(const prologue_arguments& a) {
  return (a.q.norm.dims + a.kv.norm.dims + a.keys.norm.dims) * 8 + a.topk.columns * 4;
}

}  // namespace kvcts
