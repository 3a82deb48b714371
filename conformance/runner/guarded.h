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
      : name_(from.name), size_(from.bytes.size()), fill_(fill) {
    memory_.assign(size_ + 2 * guard_bytes + alignment, fill);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard_bytes;
    start_ = guard_bytes + (alignment - address % alignment) % alignment;
    std::copy(from.bytes.begin(), from.bytes.end(), memory_.begin() + offset());
    view_ = {memory_.data() + start_, size_ + (guard_in_storage ? guard_bytes : 0), from.type,
             from.at};
  }

  const std::string& name() const { return name_; }
  const tensor_view& view() const { return view_; }
  std::byte* data() { return memory_.data() + start_; }
  const std::byte* data() const { return memory_.data() + start_; }
  const std::byte* before() const { return data() - guard_bytes; }
  const std::byte* behind() const { return data() + size_; }
  std::size_t size() const { return size_; }
  std::byte fill() const { return fill_; }

 private:
  static constexpr std::size_t alignment = 64;
  std::ptrdiff_t offset() const { return static_cast<std::ptrdiff_t>(start_); }

  std::string name_;
  std::size_t size_;
  std::byte fill_;
  std::vector<std::byte> memory_;
  std::size_t start_ = 0;
  tensor_view view_;
};

}  // namespace kvcts
