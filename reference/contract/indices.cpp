#include "reference/contract/indices.h"

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
                 std::int64_t block_size) {
  const tensor_view& slots = c.tensor(mapping);
  const std::int64_t pages = c.tensor(cache).dim(0);
  for (std::int64_t t = 0; t < slots.dim(0); ++t) {
    const std::int64_t slot = integer_at(slots, t);
    if (slot < 0 || slot / block_size < pages) continue;
    reject(c, mapping,
           "slot " + std::to_string(slot) + " of token " + std::to_string(t) +
               " is past the cache, must be below " + std::to_string(pages) + " pages * " +
               std::to_string(block_size) + " tokens of " + std::string(cache));
  }
}

}  // namespace kvcts
