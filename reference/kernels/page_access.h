// One token's record in a segregated page, addressed by the rules.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// The part of a record that addresses need.
struct record_size {
  std::int64_t block_size;   // tokens a page
  std::int64_t data_bytes;   // a token
  std::int64_t scale_bytes;  // a token
};

// Where a page starts, in bytes from the storage's first; for a page that the cache lacks a place
// before the storage that no record reaches out of.
std::int64_t page_start(const tensor_view& cache, const Rules& rules, std::int64_t page,
                        std::int64_t block_size, std::int64_t record_bytes);

// Bytes outside the buffer read as 0 and are not written: a checked call has none, a fault's
// addresses may.
class token_record {
 public:
  // `cache` is a page view whose stride 0 is the page stride.
  token_record(const tensor_view& cache, const Rules& rules, const record_size& size,
               std::int64_t page, std::int64_t position);

  std::byte data(std::int64_t index) const { return read(data_at(index)); }
  std::byte scale(std::int64_t index) const { return read(scale_at(index)); }
  void set_data(std::int64_t index, std::byte value) const { write(data_at(index), value); }
  void set_scale(std::int64_t index, std::byte value) const { write(scale_at(index), value); }

 private:
  std::int64_t data_at(std::int64_t index) const {
    return page_start_ + rules_.data_offset(position_, index, size_.block_size, size_.data_bytes,
                                            size_.scale_bytes);
  }
  std::int64_t scale_at(std::int64_t index) const {
    return page_start_ + rules_.scale_offset(position_, index, size_.block_size, size_.data_bytes,
                                             size_.scale_bytes);
  }
  bool inside(std::int64_t byte) const {
    return byte >= 0 && static_cast<std::uint64_t>(byte) < cache_.storage_bytes;
  }
  std::byte read(std::int64_t byte) const {
    return inside(byte) ? cache_.storage[byte] : std::byte{0};
  }
  void write(std::int64_t byte, std::byte value) const {
    if (inside(byte)) cache_.storage[byte] = value;
  }

  const tensor_view& cache_;
  const Rules& rules_;
  record_size size_;
  std::int64_t page_start_;  // bytes from the storage's first
  std::int64_t position_;
};

// slot % block_size, at or above 0 for a negative slot too, which only a fault inserts.
inline std::int64_t position_of(std::int64_t slot, std::int64_t block_size) {
  const std::int64_t rest = slot % block_size;
  return rest < 0 ? rest + block_size : rest;
}

// The record of a live slot.
token_record record_of_slot(const tensor_view& cache, const Rules& rules, const record_size& size,
                            std::int64_t slot);

}  // namespace kvcts
