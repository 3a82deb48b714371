// Row norms as plain data.
#pragma once

#include <cstdint>

namespace kvcts {

struct tensor_view;

// A weight or a bias, [dims] bf16 or f32.
struct norm_vector {
  const unsigned char* data;
  bool is_f32;
};
norm_vector norm_vector_of(const tensor_view& v);

// How a row of bf16 is summed: docs/numerics.md, "Sums over a row".
struct row_tree {
  std::int64_t padded;  // a power of two
  int warps;            // that have elements: 1, 2, 4 or 8
  int per;              // consecutive elements a lane: 1, 2, 4 or 8
};

struct row_norm {
  std::int64_t dims;
  row_tree tree;
  int launch_warps;
  float eps;
  float width;          // dims
  float inverse_width;  // RN(1 / dims)
  bool inverse_is_exact;
  // Where 8 elements a lane fill parts of 256 and no more than 8 of them: how many; else 0.
  int whole_parts;
};
// A row of `dims` in a launch of `warps` warps that covers the power of two from `covered` on.
row_norm row_norm_of(std::int64_t dims, std::int64_t covered, int warps, float eps);

// Rows of bf16 and their RMSNorm. Strides are in bytes.
struct norm_rows {
  const unsigned char* from;  // [rows, dims]
  std::int64_t from_stride;
  unsigned char* to;  // [rows, dims]; its dtype is the kernel's
  std::int64_t to_stride;
  norm_vector weight;
  row_norm norm;
};
norm_rows norm_rows_of(const tensor_view& from, const tensor_view& to, const tensor_view& weight,
                       const row_norm& norm);

}  // namespace kvcts
