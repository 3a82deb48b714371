// fused_layout over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/fused_layout.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

KVCTS_INLINE std::int64_t divided(std::int64_t x, std::int64_t by) {
  if (((x | by) >> 32) == 0) {  // a division of 32 bits costs less
    return static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(by);
  }
  return x / by;
}

// The unit of x that unit `to` of y is.
KVCTS_INLINE std::int64_t unit_before(const fused_layout_arguments& a, std::int64_t to) {
  const std::int64_t row = divided(to, a.heads);  // [period, chunk]
  const std::int64_t head = to - row * a.heads;
  const std::int64_t period = divided(row, a.chunks);
  const std::int64_t chunk = row - period * a.chunks;
  return (period * a.heads + head) * a.chunks + chunk;
}

}  // namespace kvcts::KVCTS_TARGET
