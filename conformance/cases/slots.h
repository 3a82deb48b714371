// Slots, positions and pages of the kernels that insert tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/cases/build.h"

namespace kvcts {

enum class slot_kind : std::uint8_t { shuffled, sequential, all_negative };

// Slots that all differ, so that the result does not depend on the order of the tokens; the first
// and the last slot of the cache are among the shuffled ones. `negative` puts -1, -7, the smallest
// i64 and -2 between them.
std::vector<std::int64_t> draw_slots(draw& from, std::int64_t tokens, std::int64_t capacity,
                                     slot_kind kind, bool negative);

// Positions of tokens of which those at group ends read a table of `rows`: the first and the last
// group among them. Tokens without a slot may lie anywhere.
std::vector<std::int64_t> draw_positions(draw& from, const std::vector<std::int64_t>& slots,
                                         std::int64_t rows, std::int64_t ratio);

buffer integers(std::string_view name, const std::vector<std::int64_t>& values);

// A page view of which a cold page is canary, a warm one drawn; bytes of others are drawn too.
struct page_shape {
  std::int64_t blocks, block_size, row;  // elements
  std::int64_t entry_gap = 0;            // elements between entries
  std::int64_t page_gap = 0;             // elements between pages
  std::int64_t offset = 0;               // elements before the first page
  std::int64_t guard = 0;                // elements after the last page
  bool warm = false;
};
buffer draw_pages(draw& from, std::string_view name, dtype type, const page_shape& pages);

}  // namespace kvcts
