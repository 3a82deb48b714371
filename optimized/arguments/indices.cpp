#include "optimized/arguments/indices.h"

#include "optimized/arguments/common.h"

namespace kvcts {

index_matrix matrix_of(const tensor_view& v) { return {first_element(v), byte_stride(v, 0)}; }

index_matrix matrix_of(const tensor_view* v) {
  return v == nullptr ? index_matrix{nullptr, 0} : matrix_of(*v);
}

// factor = floor(2^(31 + shift) / size) + 1 with 2^shift >= size: it exceeds the quotient by less
// than 2^-31 of it, too little for any x below 2^31 to reach the next integer.
index_divider divider_of(std::int64_t size) {
  int shift = 0;
  while ((std::int64_t{1} << shift) < size) ++shift;
  const auto divisor = static_cast<std::uint64_t>(size);
  const std::uint64_t factor = (std::uint64_t{1} << (31 + shift)) / divisor + 1;
  return {static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(factor), shift};
}

}  // namespace kvcts
