// fused_save_compress_norm's arguments as plain data. Strides are in bytes.
#pragma once

#include <cstdint>

namespace kvcts {

struct call;

struct fused_save_compress_norm_arguments {
  const unsigned char* kv_score;  // [rows, 512 * ratio] f32
  std::int64_t kv_score_stride;
  const unsigned char* positions;     // [tokens] i64
  const unsigned char* slot_mapping;  // [tokens] i64: page * capacity + ring row
  std::int64_t tokens;
  const unsigned char* weight;  // [512] f32 or bf16
  bool weight_is_f32;
  float eps;
  unsigned char* latent;  // [tokens, 512] bf16
  std::int64_t latent_stride;
  int ratio;
  // At ratio 2 only.
  const unsigned char* query_starts;      // [requests + 1] i32
  const unsigned char* request_of_token;  // [tokens] i32
  std::int64_t requests;
  unsigned char* state;  // [pages, capacity, 1024] f32
  std::int64_t state_page_stride;
  std::int64_t state_row_stride;
  std::int64_t capacity;
};

// Of a checked call.
fused_save_compress_norm_arguments fused_save_compress_norm_of(const call& c);
// The tokens, and behind them the requests: see kernels/fused_save_compress_norm.h.
inline std::int64_t fused_save_compress_norm_rows(const fused_save_compress_norm_arguments& a) {
  return a.tokens + (a.ratio == 2 ? a.requests : 0);
}
inline std::int64_t fused_save_compress_norm_row_bytes(
    const fused_save_compress_norm_arguments& a) {
  return 2048 * a.ratio;
}

}  // namespace kvcts
