// mxfp4_q_quant's arguments as plain data. Strides are in bytes.
#pragma once

#include <cstdint>

namespace kvcts {

struct call;

struct mxfp4_q_quant_arguments {
  const unsigned char* q;  // [tokens, heads, 128] bf16
  std::int64_t q_token_stride;
  std::int64_t q_head_stride;
  const unsigned char* index_weights;  // [tokens, heads] bf16 or f32
  std::int64_t weights_token_stride;
  unsigned char* q_packed;  // [tokens, padded_heads, 64]
  unsigned char* q_scale;   // [tokens, padded_heads, 4]
  unsigned char* weights;   // [tokens, padded_heads] f32
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t padded_heads;
  float weight_scale;
  bool weights_are_f32;
};

// Of a checked call.
mxfp4_q_quant_arguments mxfp4_q_quant_of(const call& c);
inline std::int64_t mxfp4_q_quant_rows(const mxfp4_q_quant_arguments& a) { return a.tokens; }
inline std::int64_t mxfp4_q_quant_row_bytes(const mxfp4_q_quant_arguments& a) {
  return a.padded_heads * 256;
}

}  // namespace kvcts
