#include "reference/kernels/fused_layout.h"

namespace kvcts {
namespace {

// Row of `y` that row `r` of one period of `x` moves to.
using moved_row = std::int64_t (*)(std::int64_t r, std::int64_t heads, std::int64_t head_dim);

// 16 dims of every head, then the next 16.
std::int64_t moved_q(std::int64_t r, std::int64_t heads, std::int64_t head_dim) {
  const std::int64_t head = r / head_dim;
  const std::int64_t dim = r % head_dim;
  return dim / 16 * (heads * 16) + head * 16 + dim % 16;
}

// Chunks of 32 dims, of every head of the group, then the next chunk.
std::int64_t moved_o_chunk(std::int64_t r, std::int64_t heads, std::int64_t chunks) {
  const std::int64_t head = r / chunks;
  const std::int64_t chunk = r % chunks;
  return chunk * heads + head;
}

std::int64_t moved_o(std::int64_t r, std::int64_t heads, std::int64_t head_dim) {
  return moved_o_chunk(r / 32, heads, head_dim / 32) * 32 + r % 32;
}

}  // namespace

void fused_layout(const call& c, const Rules& /*rules*/) {
  const tensor_view& x = c.tensor("x");  // [N, ...]
  const tensor_view& y = c.tensor("y");  // [N, ...]
  const std::string& op = c.text("op");
  const std::int64_t heads = c.integer("heads");
  const std::int64_t head_dim = c.integer("head_dim");
  const bool chunks = op == "o_chunk";
  const moved_row moved = chunks ? moved_o_chunk : op == "q" ? moved_q : moved_o;
  const std::int64_t rows_per_head = chunks ? head_dim / 32 : head_dim;
  const std::int64_t period = heads * rows_per_head;

  std::int64_t row_bytes = static_cast<std::int64_t>(size_of(x.type));
  for (std::size_t axis = 1; axis < x.rank(); ++axis) row_bytes *= x.dim(axis);
  const std::int64_t element = static_cast<std::int64_t>(size_of(x.type));
  const std::byte* from = x.storage + x.at.offset * element;
  std::byte* to = y.storage + y.at.offset * element;
  if (row_bytes == 0) return;
  for (std::int64_t r = 0; r < x.dim(0); ++r) {
    const std::int64_t target = r / period * period + moved(r % period, heads, rows_per_head);
    std::memcpy(to + target * row_bytes, from + r * row_bytes, static_cast<std::size_t>(row_bytes));
  }
}

}  // namespace kvcts
