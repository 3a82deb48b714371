// fused_indexer_q_rope_quant's arguments as plain data. Strides are in bytes.
#pragma once

#include "optimized/arguments/rope.h"

namespace kvcts {

struct call;

enum class query_codes : std::uint8_t { e4m3fn, e4m3fnuz, mxfp4 };

struct fused_indexer_q_rope_quant_arguments {
  const unsigned char* positions;  // [tokens] i64
  const unsigned char* q;          // [tokens, heads, dims] bf16
  std::int64_t q_token_stride;
  std::int64_t q_head_stride;
  cos_sin_view table;            // rope_dims
  const unsigned char* weights;  // [tokens, heads] bf16 or f32
  std::int64_t weights_token_stride;
  unsigned char* codes;        // [tokens, heads, dims], or dims/2 bytes of MXFP4
  unsigned char* scales;       // MXFP4: [tokens, heads, dims/32] UE8M0
  unsigned char* weights_out;  // [tokens, heads] f32 or bf16
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t dims;
  std::int64_t rope_dims;
  float softmax_scale;
  float head_scale;
  query_codes form;
  bool weights_are_f32;
  bool weights_out_are_f32;
};

// Of a checked call.
fused_indexer_q_rope_quant_arguments fused_indexer_q_rope_quant_of(const call& c);
inline std::int64_t fused_indexer_q_rope_quant_rows(const fused_indexer_q_rope_quant_arguments& a) {
  return a.tokens;
}
inline std::int64_t fused_indexer_q_rope_quant_row_bytes(
    const fused_indexer_q_rope_quant_arguments& a) {
  return a.heads * a.dims * 2;
}

}  // namespace kvcts
