#include "reference/kernels/group_rows.h"

#include <algorithm>

namespace kvcts {

std::vector<group_row> rows_at_group_ends(const Rules& rules, const tensor_view& slots,
                                          const tensor_view& positions, std::int64_t rows,
                                          std::int64_t ratio) {
  const std::int64_t mapped = slots.dim(0);
  const std::int64_t end = rules.rows_past_mapping ? std::min(rows, positions.dim(0)) : mapped;
  std::vector<group_row> found;
  for (std::int64_t row = 0; row < end; ++row) {
    const std::int64_t slot = row < mapped ? load<std::int64_t>(slots.element(row)) : row;
    const auto position = load<std::int64_t>(positions.element(row));
    if (!rules.slot_is_live(slot) || !rules.group_ends_at(position, ratio)) continue;
    found.push_back({row, slot, position});
  }
  return found;
}

}  // namespace kvcts
