// Where a token's record lies in a paged cache.
#pragma once

#include "optimized/arguments/pages.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

struct record_place {
  unsigned char* data;
  unsigned char* scales;
};

// a / b of numbers that are not negative. A division of 32 bits costs the device less.
KVCTS_INLINE std::int64_t divided(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

KVCTS_INLINE std::int64_t page_of_slot(const page_view& pages, std::int64_t slot) {
  if (pages.block_shift >= 0) return slot >> pages.block_shift;
  return divided(slot, pages.block_size);
}

// slot >= 0; data_bytes and scale_bytes are a token's.
KVCTS_INLINE record_place place_of_slot(const page_view& pages, std::int64_t slot,
                                        std::int64_t data_bytes, std::int64_t scale_bytes) {
  const std::int64_t page = page_of_slot(pages, slot);
  const std::int64_t position = slot - page * pages.block_size;
  unsigned char* start = pages.start + page * pages.page_stride;
  return {start + position * data_bytes,
          start + pages.block_size * data_bytes + position * scale_bytes};
}

}  // namespace kvcts::KVCTS_TARGET
