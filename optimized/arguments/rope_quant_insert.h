// rope_quant_insert's arguments as plain data. Strides are in bytes.
#pragma once

#include "optimized/arguments/pages.h"
#include "optimized/arguments/rope.h"

namespace kvcts {

struct call;

enum class latent_record : std::uint8_t { v4, v41_mxfp8, v41_nvfp4, bf16, fp8 };

struct rope_quant_insert_arguments {
  const unsigned char* latent;  // [rows, 512] bf16
  std::int64_t latent_row_stride;
  group_rows_view at;
  cos_sin_view table;  // 64 dims
  page_view cache;
  std::int64_t entry_stride;       // between the tokens of a page, of plain rows
  const unsigned char* fp8_scale;  // f32, of plain FP8 rows
  latent_record record;
};

// Of a checked call.
rope_quant_insert_arguments rope_quant_insert_of(const call& c);
inline std::int64_t rope_quant_insert_rows(const rope_quant_insert_arguments& a) {
  return a.at.rows;
}
inline std::int64_t rope_quant_insert_row_bytes(const rope_quant_insert_arguments&) { return 1024; }

}  // namespace kvcts
