#include "optimized/arguments/fused_layout.h"

#include "optimized/arguments/common.h"

namespace kvcts {

fused_layout_arguments fused_layout_of(const call& c) {
  const tensor_view& x = c.tensor("x");
  const std::string& op = c.text("op");
  const std::int64_t dims_a_chunk = op == "q" ? 16 : 32;
  const std::int64_t rows_a_unit = op == "o_chunk" ? 1 : dims_a_chunk;
  auto row_bytes = static_cast<std::int64_t>(size_of(x.type));
  // A dimension of 0 may stand behind ones whose product leaves 64 bits.
  for (std::size_t axis = 1; axis < x.rank(); ++axis) {
    if (x.dim(axis) == 0) row_bytes = 0;
  }
  for (std::size_t axis = 1; axis < x.rank() && row_bytes != 0; ++axis) row_bytes *= x.dim(axis);
  fused_layout_arguments a{};
  a.x = first_element(x);
  a.y = first_element(c.tensor("y"));
  a.unit_bytes = rows_a_unit * row_bytes;
  a.units = row_bytes == 0 ? 0 : x.dim(0) / rows_a_unit;
  a.heads = c.integer("heads");
  a.chunks = c.integer("head_dim") / dims_a_chunk;
  return a;
}

}  // namespace kvcts
