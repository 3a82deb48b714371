#include "conformance/cases/index_rows.h"

#include <algorithm>

namespace kvcts {

buffer i32_list(std::string_view name, const numbers& values, std::int64_t guard) {
  buffer made =
      make_buffer(name, dtype::i32, dense({static_cast<std::int64_t>(values.size())}), guard);
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(made.view().element(static_cast<std::int64_t>(i)), static_cast<std::int32_t>(values[i]));
  }
  return made;
}

buffer i32_rows(draw& from, std::string_view name, const index_rows& shape, const numbers& values) {
  buffer made = make_buffer(
      name, dtype::i32, {{shape.rows, shape.columns}, {shape.columns + shape.gap, 1}, shape.offset},
      shape.guard);
  if (shape.gap != 0 || shape.offset != 0) {
    for (std::size_t i = 0; i < made.bytes.size(); i += 4) {
      store(made.bytes.data() + i, static_cast<std::int32_t>(from.below(4)));
    }
  }
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      store(made.view().element(r, c),
            static_cast<std::int32_t>(values[static_cast<std::size_t>(r * shape.columns + c)]));
    }
  }
  return made;
}

numbers split(draw& from, std::int64_t total, std::int64_t parts, bool empty) {
  numbers lens(static_cast<std::size_t>(parts), 0);
  if (parts == 0) return lens;
  // The cuts between parts, sorted.
  numbers cuts;
  const std::int64_t filled = empty && parts > 1 ? parts - 1 : parts;
  for (std::int64_t i = 0; i + 1 < filled; ++i) cuts.push_back(from.between(0, total));
  std::sort(cuts.begin(), cuts.end());
  cuts.push_back(total);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    lens[i] = cuts[i] - last;
    last = cuts[i];
  }
  // The empty one changes places with any other.
  if (filled < parts) std::swap(lens.back(), lens[from.below(static_cast<std::uint64_t>(parts))]);
  return lens;
}

numbers starts_of(const numbers& lens, std::int64_t first) {
  numbers starts = {first};
  for (const std::int64_t len : lens) starts.push_back(starts.back() + len);
  return starts;
}

std::int64_t page_index(draw& from, std::int64_t entries, std::int64_t block_size) {
  const std::int64_t any = from.between(0, entries - 1);
  const std::int64_t first = any / block_size * block_size;
  switch (from.below(4)) {
    case 0:
      return first;
    case 1:
      return std::min(first + block_size, entries) - 1;
    default:
      return any;
  }
}

std::int64_t negative_index(draw& from) {
  constexpr std::int64_t others[] = {-2, -7, INT32_MIN, INT32_MIN + 1};
  return from.one_in(3) ? others[from.below(std::size(others))] : -1;
}

numbers table_entries(draw& from, std::int64_t n, std::int64_t block_size, bool negative,
                      bool large) {
  const std::int64_t pages = (std::int64_t{INT32_MAX} + 1) / block_size;
  numbers entries;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t page = from.between(0, std::min<std::int64_t>(4 * n + 8, pages) - 1);
    if (large) page = pages - 1 - from.below(3);
    if (negative && (i % 3 == 1 || from.one_in(6))) {
      page = from.one_in(3) ? std::max<std::int64_t>(-1 - from.below(20), -pages) : -1;
    }
    entries.push_back(page);
  }
  return entries;
}

}  // namespace kvcts
