// What the index kernels share: i32 elements, and the way through a block table.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

inline std::int64_t index_at(const tensor_view& v, std::int64_t i) {
  return load<std::int32_t>(v.element(i));
}
inline std::int64_t index_at(const tensor_view& v, std::int64_t i, std::int64_t j) {
  return load<std::int32_t>(v.element(i, j));
}
inline void set_index(const tensor_view& v, std::int64_t i, std::int64_t value) {
  store(v.element(i), static_cast<std::int32_t>(value));
}
inline void set_index(const tensor_view& v, std::int64_t i, std::int64_t j, std::int64_t value) {
  store(v.element(i, j), static_cast<std::int32_t>(value));
}

// The slot of entry `local` of a request; -1 for a negative one. A table entry of -1 is ordinary
// arithmetic and gives a negative slot.
inline std::int64_t slot_of_local(const Rules& rules, const tensor_view& table,
                                  std::int64_t request, std::int64_t local,
                                  std::int64_t block_size) {
  if (!rules.index_is_live(local)) return -1;
  // Only a fault comes here, whose read of the table would be anywhere.
  if (local < 0 || local / block_size >= table.dim(1)) return local;
  return index_at(table, request, local / block_size) * block_size + local % block_size;
}

}  // namespace kvcts
