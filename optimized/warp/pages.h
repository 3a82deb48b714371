// Where a token's record lies in a paged cache.
#pragma once

#include "optimized/arguments/pages.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

struct record_place {
  unsigned char* data;
  unsigned char* scales;
};

KVCTS_INLINE std::int64_t page_of_slot(const page_view& pages, std::int64_t slot) {
  if (pages.block_shift >= 0) return slot >> pages.block_shift;
  if (((slot | pages.block_size) >> 32) == 0) {  // a division of 32 bits costs the device less
    return static_cast<std::uint32_t>(slot) / static_cast<std::uint32_t>(pages.block_size);
  }
  return slot / pages.block_size;
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
