// The rows that a store at group ends takes.
#pragma once

#include <vector>

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

struct group_row {
  std::int64_t row;
  std::int64_t slot;
  std::int64_t position;
};

// Rows of the slot mapping with a live slot, at the last position of a group of `ratio` tokens.
// Only a fault goes past the mapping, up to `rows`; there the row's number stands for the slot it
// finds.
std::vector<group_row> rows_at_group_ends(const Rules& rules, const tensor_view& slots,
                                          const tensor_view& positions, std::int64_t rows,
                                          std::int64_t ratio);

}  // namespace kvcts
