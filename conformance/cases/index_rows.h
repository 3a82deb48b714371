// Integer arguments of the index kernels and of the gather.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/cases/build.h"

namespace kvcts {

using numbers = std::vector<std::int64_t>;

// i32 [n].
buffer i32_list(std::string_view name, const numbers& values, std::int64_t guard = 0);

// i32 [rows, columns]; what lies between and around the rows are small indices, so that reading
// one shows.
struct index_rows {
  std::int64_t rows = 0, columns = 0;
  std::int64_t gap = 0;     // elements between rows
  std::int64_t offset = 0;  // elements before the first row
  std::int64_t guard = 0;   // elements after the last row
};
buffer i32_rows(draw& from, std::string_view name, const index_rows& shape, const numbers& values);

// `total` as `parts` numbers >= 0 in any order; with `empty`, and parts > 1, at least one is 0.
numbers split(draw& from, std::int64_t total, std::int64_t parts, bool empty);

// 0, a, a+b, ... from `first` on: one more than `lens`.
numbers starts_of(const numbers& lens, std::int64_t first = 0);

// An index of 0 .. entries-1, often the first or last one of a page.
std::int64_t page_index(draw& from, std::int64_t entries, std::int64_t block_size);

// A negative index: mostly -1.
std::int64_t negative_index(draw& from);

// Entries of a block table. `negative`: some are -1 or lower. `large`: ids reach the largest i32
// for pages of `block_size` entries.
numbers table_entries(draw& from, std::int64_t n, std::int64_t block_size, bool negative,
                      bool large);

}  // namespace kvcts
