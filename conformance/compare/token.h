// One token's record of a page as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/compare/value.h"
#include "reference/layout/paged.h"

namespace kvcts {

// Values that share a scale, or that have none (then `scale_bits` is empty).
struct decoded_block {
  std::int64_t first_dim = 0;
  dtype type = dtype::u8;              // of the values
  std::string scale_bits;              // "0x7E"
  double scale = 1;                    // a NaN byte is a NaN
  std::vector<std::string> code_bits;  // "0xE6", of packed values "0x6"
  std::vector<double> codes;           // decoded, unscaled
  std::vector<double> values;          // code * scale, exact
};

struct decoded_token {
  std::vector<decoded_block> blocks;  // by dims
  std::vector<std::uint8_t> pad;      // bytes of the record that mean nothing
};

// Addresses of one token's parts. The view is kept by reference.
class token_bytes {
 public:
  token_bytes(const paged_view& view, const std::byte* storage, std::int64_t page,
              std::int64_t position)
      : view_(view),
        page_(storage + view.first_byte + page * view.page_stride),
        position_(position) {}

  const std::byte* data(std::int64_t byte) const;
  const std::byte* scale(std::int64_t byte) const;  // of an interleaved record: as data

 private:
  const paged_view& view_;
  const std::byte* page_;
  std::int64_t position_;
};

// `storage` holds all pages of the view. `block_dims` is how many values without a scale one block
// has.
decoded_token decode_token(const paged_view& view, const std::byte* storage, std::int64_t page,
                           std::int64_t position, std::int64_t block_dims = 32);

}  // namespace kvcts
