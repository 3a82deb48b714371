// Memory of many GiB that is zero but for a few pages: a memfd with holes, so that a cache past
// 2^32 bytes costs what is written of it.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {

class sparse_memory : public holed_storage {
 public:
  // Pages are counted from data().
  static constexpr std::size_t page = 4096;

  sparse_memory() = default;
  // All zero, data() at a page's start. Throws std::runtime_error where the system refuses.
  explicit sparse_memory(std::size_t bytes);
  sparse_memory(const sparse_memory& from);
  sparse_memory(sparse_memory&& from) noexcept;
  sparse_memory& operator=(sparse_memory from) noexcept;
  ~sparse_memory() override;

  bool empty() const { return bytes_ == 0; }
  std::size_t size() const { return bytes_; }
  // The memfd, for another process: data() is at its second page.
  int file() const { return file_; }
  // The page before it and at least one behind size() are there too, for guards.
  std::byte* data() const { return mapping_ == nullptr ? nullptr : mapping_ + page; }
  // Runs of pages that hold a byte other than zero: those never written are not looked at.
  std::vector<byte_range> written() const override;

 private:
  std::size_t mapped_bytes() const;

  int file_ = -1;
  std::byte* mapping_ = nullptr;
  std::size_t bytes_ = 0;
};

// Ranges that cover both, in order, without overlap.
std::vector<byte_range> united(const std::vector<byte_range>& a, const std::vector<byte_range>& b);

}  // namespace kvcts
