// The kernels' arguments as plain data, for every target: addresses, strides and counts of a
// checked call. All strides are in bytes.
#pragma once

#include <cstdint>

namespace kvcts {

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

struct quantize_and_insert_arguments {
  const unsigned char* k;  // [rows, 512] bf16
  std::int64_t k_row_stride;
  const unsigned char* slots;  // [rows] i64
  std::int64_t rows;
  unsigned char* cache;  // pages: the data of block_size tokens, then their scales
  std::int64_t page_stride;
  std::int64_t block_size;
  int block_shift;      // log2(block_size), or -1 where it is no power of two
  int bytes_per_token;  // 584 or 528
  bool fnuz;
};

}  // namespace kvcts
