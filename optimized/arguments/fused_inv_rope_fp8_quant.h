// fused_inv_rope_fp8_quant's arguments as plain data. Strides are in bytes.
#pragma once

#include "optimized/arguments/rope.h"

namespace kvcts {

struct call;

struct fused_inv_rope_fp8_quant_arguments {
  const unsigned char* o;  // [tokens, heads, dims] bf16
  std::int64_t o_token_stride;
  std::int64_t o_head_stride;
  const unsigned char* positions;  // [tokens] i64
  cos_sin_view table;              // rope_dims, f32
  unsigned char* output;           // [groups, tokens, heads_per_group * dims] E4M3 or bf16
  unsigned char* scales;  // [groups, scales of a group, padded_tokens] f32, or fours of bytes
  std::int64_t tokens;
  std::int64_t padded_tokens;  // to a multiple of 4
  std::int64_t heads;
  std::int64_t heads_per_group;
  std::int64_t dims;
  std::int64_t rope_dims;
  std::int64_t dims_per_scale;
  bool quantize;  // false: bf16 output, no scales
  bool packed;    // UE8M0 bytes, four in a word
};

// Of a checked call.
fused_inv_rope_fp8_quant_arguments fused_inv_rope_fp8_quant_of(const call& c);
inline std::int64_t fused_inv_rope_fp8_quant_rows(const fused_inv_rope_fp8_quant_arguments& a) {
  return a.tokens;
}
inline std::int64_t fused_inv_rope_fp8_quant_row_bytes(
    const fused_inv_rope_fp8_quant_arguments& a) {
  return a.heads * a.dims * 2;
}

}  // namespace kvcts
