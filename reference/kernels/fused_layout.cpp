#include "reference/kernels/fused_layout.h"

namespace kvcts {

void fused_layout(const call& c, const Rules& rules) {
  const tensor_view& x = c.tensor("x");  // [N, ...]
  const tensor_view& y = c.tensor("y");  // [N, ...]
  const std::string& op = c.text("op");
  const std::int64_t heads = c.integer("heads");
  const std::int64_t head_dim = c.integer("head_dim");
  // "o_chunk" rows stand for 32 dims each, as scales have it; "q" and "o" rows for one.
  const std::int64_t rows_per_head = op == "o_chunk" ? head_dim / 32 : head_dim;
  const std::int64_t chunk = op == "o_chunk" ? 1 : op == "q" ? 16 : 32;
  const std::int64_t period = heads * rows_per_head;

  std::int64_t row_bytes = static_cast<std::int64_t>(size_of(x.type));
  for (std::size_t axis = 1; axis < x.rank(); ++axis) row_bytes *= x.dim(axis);
  const std::int64_t element = static_cast<std::int64_t>(size_of(x.type));
  const std::byte* from = x.storage + x.at.offset * element;
  std::byte* to = y.storage + y.at.offset * element;
  if (row_bytes == 0) return;
  for (std::int64_t r = 0; r < x.dim(0); ++r) {
    const std::int64_t in_period = r % period;
    const std::int64_t target =
        r - in_period +
        rules.interleaved_row(in_period / rows_per_head, in_period % rows_per_head, heads,
                              rows_per_head, chunk);
    if (target < 0 || target >= x.dim(0)) continue;  // only a fault's
    std::memcpy(to + target * row_bytes, from + r * row_bytes, static_cast<std::size_t>(row_bytes));
  }
}

}  // namespace kvcts
