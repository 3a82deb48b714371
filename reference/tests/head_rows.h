// Buffers of bf16 rows and cos/sin tables for tests of rotated heads.
#pragma once

#include <string>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/tests/call_builder.h"

namespace kvcts {

// bf16 bits of the values, padded with zeros to `size`.
inline std::vector<std::uint16_t> bf16_bits(const std::vector<float>& values,
                                            std::size_t size = 0) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(encode_bf16(value));
  if (bits.size() < size) bits.resize(size);
  return bits;
}

// A table of `rope_dims` columns: row 0 leaves pairs alone (c = 1, s = 0), row 1 turns them by a
// quarter (c = 0, s = 1), and so on in turn.
inline void add_turns(call_builder& call, const std::string& name, std::int64_t rows,
                      std::int64_t rope_dims) {
  std::vector<float> table;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < rope_dims; ++i) {
      table.push_back((i < rope_dims / 2) == (row % 2 == 0) ? 1.0F : 0.0F);
    }
  }
  call.add(name, dtype::f32, {rows, rope_dims}, table);
}

inline std::vector<int> ints(const std::vector<std::uint8_t>& bytes, std::size_t from,
                             std::size_t count) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
          bytes.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

}  // namespace kvcts
