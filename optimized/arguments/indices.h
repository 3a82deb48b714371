// What the index kernels share as plain data: i32 matrices, and division by a page's size.
#pragma once

#include <cstdint>

namespace kvcts {

struct tensor_view;

// [rows, columns] i32; consecutive columns. Null where the argument is absent.
struct index_matrix {
  unsigned char* start;
  std::int64_t row_stride;  // bytes
};

// x / size = high word of 2x * factor, >> shift, for x below 2^31.
struct index_divider {
  std::uint32_t size;
  std::uint32_t factor;
  int shift;
};

index_matrix matrix_of(const tensor_view& v);
index_matrix matrix_of(const tensor_view* v);
// 1 <= size < 2^31
index_divider divider_of(std::int64_t size);

}  // namespace kvcts
