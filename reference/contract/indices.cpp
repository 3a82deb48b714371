#include "reference/contract/indices.h"

#include <algorithm>

namespace kvcts {
namespace {

std::int64_t integer_from(const tensor_view& v, const std::byte* element) {
  if (v.type == dtype::i64) return load<std::int64_t>(element);
  if (v.type == dtype::i32) return load<std::int32_t>(element);
  return load<std::uint8_t>(element);
}

}  // namespace

void reject(const call& c, std::string_view argument, const std::string& message) {
  throw input_error(c.kernel + ": " + std::string(argument) + ": " + message);
}

std::int64_t integer_at(const tensor_view& v, std::int64_t i) {
  return integer_from(v, v.element(i));
}
std::int64_t integer_at(const tensor_view& v, std::int64_t i, std::int64_t j) {
  return integer_from(v, v.element(i, j));
}

void check_slots(const call& c, std::string_view mapping, std::string_view cache,
                 std::int64_t block_size, std::int64_t tokens) {
  const tensor_view& slots = c.tensor(mapping);
  const std::int64_t pages = c.tensor(cache).dim(0);
  for (std::int64_t t = 0; t < std::min(tokens, slots.dim(0)); ++t) {
    const std::int64_t slot = integer_at(slots, t);
    if (slot < 0 || slot / block_size < pages) continue;
    reject(c, mapping,
           "slot " + std::to_string(slot) + " of token " + std::to_string(t) +
               " is past the cache, must be below " + std::to_string(pages) + " pages * " +
               std::to_string(block_size) + " tokens of " + std::string(cache));
  }
}

namespace {

void check_table_row(const call& c, std::string_view positions, std::int64_t token,
                     std::int64_t position, std::int64_t row, std::string_view table) {
  const std::int64_t rows = c.tensor(table).dim(0);
  if (position >= 0 && row < rows) return;
  reject(c, positions,
         "position " + std::to_string(position) + " of token " + std::to_string(token) +
             " must be 0 or more and inside the " + std::to_string(rows) + " rows of " +
             std::string(table));
}

}  // namespace

void check_position(const call& c, std::string_view positions, std::int64_t token,
                    std::string_view table) {
  const std::int64_t position = integer_at(c.tensor(positions), token);
  check_table_row(c, positions, token, position, position, table);
}

void check_group_positions(const call& c, std::string_view positions, std::string_view mapping,
                           std::string_view table) {
  const std::int64_t ratio = c.integer("compress_ratio");
  const tensor_view& slots = c.tensor(mapping);
  for (std::int64_t t = 0; t < slots.dim(0); ++t) {
    if (integer_at(slots, t) < 0) continue;
    const std::int64_t position = integer_at(c.tensor(positions), t);
    const bool ends_group = position < 0 || position % ratio == ratio - 1;
    if (ends_group) check_table_row(c, positions, t, position, position / ratio * ratio, table);
  }
}

void check_f32_alignment(const call& c, std::string_view cache, bool entries) {
  const tensor_view* v = c.find(cache);
  if (v == nullptr) return;
  const auto require = [&](bool matters, std::string_view what, std::int64_t bytes) {
    if (!matters || bytes % 4 == 0) return;
    reject(c, cache,
           std::string(what) + " is " + std::to_string(bytes) +
               " bytes, must be a multiple of 4 (f32 scales lie inside)");
  };
  require(true, "offset", v->at.offset);
  require(v->dim(0) > 1, "page stride", v->stride(0));
  require(entries && v->dim(1) > 1, "entry stride", v->stride(1));
}

void check_request(const call& c, std::string_view requests, std::int64_t token,
                   std::int64_t request, std::string_view table) {
  const std::int64_t rows = c.tensor(table).dim(0);
  if (request >= 0 && request < rows) return;
  reject(c, requests,
         "request " + std::to_string(request) + " of token " + std::to_string(token) +
             " is no row of " + std::string(table) + ", must be in 0.." + std::to_string(rows - 1));
}

void check_entry(const call& c, std::string_view argument, std::int64_t token, std::int64_t local,
                 std::string_view table, std::int64_t request, std::int64_t block_size,
                 std::int64_t span) {
  const tensor_view& pages = c.tensor(table);
  const std::int64_t column = local / block_size;
  if (column >= pages.dim(1)) {
    reject(c, argument,
           "index " + std::to_string(local) + " of token " + std::to_string(token) +
               " is past the table, must be below " + std::to_string(pages.dim(1)) +
               " columns of " + std::string(table) + " * " + std::to_string(block_size) +
               " entries");
  }
  const std::int64_t page = integer_at(pages, request, column);
  const std::int64_t in_page = local % block_size;
  const std::string what =
      "page " + std::to_string(page) + ", which token " + std::to_string(token) + " takes,";
  check_id(c, table, what, page * block_size + in_page);
  if (page >= 0) check_id(c, table, what, page * span + in_page);
}

void check_id(const call& c, std::string_view argument, const std::string& what, std::int64_t id) {
  if (id >= INT32_MIN && id <= INT32_MAX) return;
  reject(c, argument, what + " gives id " + std::to_string(id) + ", ids must fit an i32");
}

void check_query_starts(const call& c, std::string_view starts, std::int64_t base,
                        std::int64_t tokens) {
  const tensor_view& v = c.tensor(starts);
  for (std::int64_t r = 0; r + 1 < v.dim(0); ++r) {
    const std::int64_t start = integer_at(v, r);
    const std::int64_t end = integer_at(v, r + 1);
    if (end < start) {
      reject(c, starts,
             "falls from " + std::to_string(start) + " to " + std::to_string(end) + " at request " +
                 std::to_string(r) + ", must not fall");
    }
    if (end - base > tokens) {
      reject(c, starts,
             "request " + std::to_string(r) + " ends at token " + std::to_string(end - base) +
                 ", must end within the " + std::to_string(tokens) + " tokens");
    }
  }
}

}  // namespace kvcts
