#include "conformance/cases/slots.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace kvcts {

std::vector<std::int64_t> draw_slots(draw& from, std::int64_t tokens, std::int64_t capacity,
                                     slot_kind kind, bool negative) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(capacity));
  std::iota(slots.begin(), slots.end(), 0);
  if (kind == slot_kind::shuffled && tokens > 0) {
    for (std::size_t i = slots.size() - 1; i > 0; --i) {
      std::swap(slots[i], slots[from.below(i + 1)]);
    }
    std::iter_swap(slots.begin(), std::find(slots.begin(), slots.end(), 0));
    if (tokens > 1) {
      std::iter_swap(slots.begin() + (tokens - 1),
                     std::find(slots.begin(), slots.end(), capacity - 1));
    }
  }
  slots.resize(static_cast<std::size_t>(tokens));
  constexpr std::int64_t negatives[] = {-1, -7, std::numeric_limits<std::int64_t>::min(), -2};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool inside = i > 0 && i + 1 < slots.size();
    if (kind == slot_kind::all_negative || (negative && inside && from.one_in(4))) {
      slots[i] = negatives[from.below(std::size(negatives))];
    }
  }
  if (negative && slots.size() > 4) std::copy(negatives, negatives + 3, slots.begin() + 1);
  return slots;
}

std::vector<std::int64_t> draw_positions(draw& from, const std::vector<std::int64_t>& slots,
                                         std::int64_t rows, std::int64_t ratio) {
  // The last group end may itself lie one past an odd table: its group's first row is inside.
  const std::int64_t last = (rows - 1) / ratio * ratio + ratio - 1;
  std::vector<std::int64_t> positions;
  for (const std::int64_t slot : slots) {
    constexpr std::int64_t anywhere[] = {-1, std::int64_t{1} << 40, -1000, 3};
    positions.push_back(slot < 0 ? anywhere[from.below(4)] : from.between(0, last));
  }
  if (!slots.empty() && slots.front() >= 0) positions.front() = ratio - 1;
  if (slots.size() > 1 && slots.back() >= 0) positions.back() = last;
  return positions;
}

buffer integers(std::string_view name, const std::vector<std::int64_t>& values) {
  buffer made = make_buffer(name, dtype::i64, dense({static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(made.view().element(static_cast<std::int64_t>(i)), values[i]);
  }
  return made;
}

buffer draw_pages(draw& from, std::string_view name, dtype type, const page_shape& pages) {
  const std::int64_t entry = pages.row + pages.entry_gap;
  const std::int64_t page = pages.block_size * entry;
  const std::int64_t stride = page + pages.page_gap;
  buffer cache = make_buffer(
      name, type, {{pages.blocks, pages.block_size, pages.row}, {stride, entry, 1}, pages.offset},
      pages.guard);
  const auto element = static_cast<std::int64_t>(size_of(type));
  for (std::size_t i = 0; i < cache.bytes.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / element - pages.offset;
    const bool inside = at >= 0 && at / stride < pages.blocks && at % stride < page &&
                        at % stride % entry < pages.row;
    if (pages.warm || !inside) cache.bytes[i] = static_cast<std::byte>(from.below(256));
  }
  return cache;
}

}  // namespace kvcts
