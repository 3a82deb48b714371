// Memory of a candidate's call: a buffer between guards, whose first byte is 64-byte aligned.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "vectors/suite.h"

namespace kvcts {

class guarded_buffer {
 public:
  static constexpr std::size_t guard_bytes = 64;

  // Outputs carry the guard behind them inside their storage (`guard_in_storage`), so that a
  // candidate which copies storages copies it too.
  guarded_buffer(const buffer& from, std::byte fill, bool guard_in_storage)
      : name_(from.name), size_(from.size()), fill_(fill), sparse_(from.sparse) {
    std::byte* start = sparse_.data();
    if (!from.is_sparse()) {
      memory_.assign(size_ + 2 * guard_bytes + alignment, fill);
      const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
      start = memory_.data() + guard_bytes;
      start += (alignment - (address + guard_bytes) % alignment) % alignment;
      std::copy(from.bytes.begin(), from.bytes.end(), start);
    } else {
      std::memset(start - guard_bytes, static_cast<int>(fill), guard_bytes);
      std::memset(start + size_, static_cast<int>(fill), guard_bytes);
    }
    view_ = {start, size_ + (guard_in_storage ? guard_bytes : 0), from.type, from.at,
             from.is_sparse() ? &sparse_ : nullptr};
  }
  guarded_buffer(const guarded_buffer&) = delete;
  guarded_buffer& operator=(const guarded_buffer&) = delete;

  const std::string& name() const { return name_; }
  const tensor_view& view() const { return view_; }
  const std::byte* data() const { return view_.storage; }
  const std::byte* before() const { return data() - guard_bytes; }
  const std::byte* behind() const { return data() + size_; }
  std::size_t size() const { return size_; }
  // The content, as a buffer like `like`.
  buffer content(const buffer& like) const {
    buffer made = like;
    if (like.is_sparse()) {
      made.sparse = sparse_;
    } else {
      made.bytes.assign(data(), data() + size_);
    }
    return made;
  }
  std::byte fill() const { return fill_; }

 private:
  static constexpr std::size_t alignment = 64;

  std::string name_;
  std::size_t size_;
  std::byte fill_;
  std::vector<std::byte> memory_;
  sparse_memory sparse_;
  tensor_view view_;
};

}  // namespace kvcts
