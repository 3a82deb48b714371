// Rows that are stored at the ends of groups of tokens.
#pragma once

#include "optimized/arguments/rope.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

struct group_row {
  std::int64_t row;
  std::int64_t slot;
  std::int64_t position;  // of the group's first token
};

// False where the row is not stored: no live slot, or not the group's last position.
template <class G, bool Aligned>
KVCTS_INLINE bool load_group_row(const group_rows_view& at, std::int64_t row, group_row& to) {
  const std::int64_t slot = G::template load_i64<Aligned>(at.slots + row * 8);
  const std::int64_t position = G::template load_i64<Aligned>(at.positions + row * 8);
  to = {row, slot, at.ratio == 2 ? position - 1 : position};
  return slot >= 0 && (at.ratio == 1 || position % 2 == 1);
}

}  // namespace kvcts::KVCTS_TARGET
