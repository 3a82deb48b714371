#include "reference/kernels/cos_sin.h"

#include <algorithm>

#include "reference/kernels/norm.h"

namespace kvcts {

std::vector<float> cos_sin_row(const tensor_view& table, std::int64_t position) {
  if (table.dim(0) == 0) return std::vector<float>(static_cast<std::size_t>(table.dim(1)));
  return read_row(table, std::clamp<std::int64_t>(position, 0, table.dim(0) - 1));
}

}  // namespace kvcts
