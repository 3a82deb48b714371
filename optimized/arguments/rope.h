// What the kernels that rotate share, as plain data.
#pragma once

#include <cstdint>

namespace kvcts {

struct tensor_view;

// [max_pos, dims] f32 or bf16: the cosines of a position, then its sines.
struct cos_sin_view {
  const unsigned char* start;
  std::int64_t stride;  // bytes
  bool is_f32;
};
cos_sin_view cos_sin_of(const tensor_view& table);

// Rows that are stored at the last position of a group of `ratio` tokens, where their slot is live.
struct group_rows_view {
  const unsigned char* slots;      // [rows] i64
  const unsigned char* positions;  // [rows] i64
  std::int64_t rows;
  int ratio;  // 1 or 2
};
group_rows_view group_rows_of(const tensor_view& slots, const tensor_view& positions,
                              std::int64_t ratio);

}  // namespace kvcts
