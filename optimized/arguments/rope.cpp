#include "optimized/arguments/rope.h"

#include "optimized/arguments/common.h"

namespace kvcts {

cos_sin_view cos_sin_of(const tensor_view& table) {
  return {first_element(table), byte_stride(table, 0), table.type == dtype::f32};
}

group_rows_view group_rows_of(const tensor_view& slots, const tensor_view& positions,
                              std::int64_t ratio) {
  return {first_element(slots), first_element(positions), slots.dim(0), static_cast<int>(ratio)};
}

}  // namespace kvcts
