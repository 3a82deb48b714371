// Compares whole buffers, byte for byte, and says where they differ.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/result.h"
#include "vectors/file.h"
#include "vectors/suite.h"

namespace kvcts {

// Most places that a case names.
constexpr std::size_t most_places = 8;

struct comparison {
  std::uint64_t compared = 0;   // bytes
  std::uint64_t different = 0;  // bytes
  std::vector<difference> places;
  std::vector<buffer_picture> pictures;
};

// Of one call: compare() each buffer, or start() and compare() its windows; then result().
class comparer {
 public:
  // `context` holds the call's inputs (the slot mapping tells which token a record belongs to);
  // `names` is what check() bound. Both are kept by reference.
  comparer(const kernel_contract& contract, const call& context, const bindings& names);
  ~comparer();
  comparer(const comparer&) = delete;
  comparer& operator=(const comparer&) = delete;

  // `got` has as many bytes as `expected` at least. Of sparse buffers the pages are compared that
  // are not zero in one of the two. `note` follows the place: "input: must not change".
  void compare(const buffer& expected, const tensor_view& got, std::string_view note = {});
  // An argument whose bytes come window by window, in order.
  void start(std::string_view argument, dtype type, const extent& at, std::string_view note = {});
  // Both hold the storage from byte `first` on.
  struct window {
    const std::byte *expected, *got;
    std::uint64_t first;
  };
  // The window holds the whole of every element that the range touches.
  void compare(const window& in, const byte_range& range);
  // Bytes beside a buffer that must all be `fill`: `before` tells on which side. Nothing is counted
  // as compared where they are.
  void compare_guard(std::string_view argument, const std::byte* guard, std::size_t bytes,
                     std::byte fill, bool before, std::string_view note = {});
  // The shortest list of at most `most_places` places that covers every differing byte.
  comparison result() const;
  // Maps of the first arguments that differ.
  std::vector<buffer_picture> pictures() const;

 private:
  struct state;
  state* state_;
};

// Two tensors of files, of equal size, by pieces: whatever their size, some 50 MiB are in memory.
// `progress` is called with the bytes of each piece.
void compare_tensors(comparer& to, const file_tensor& expected, const file_tensor& got,
                     const std::function<void(std::uint64_t)>& progress);
// The first byte in which they differ.
std::optional<std::uint64_t> first_difference(const file_tensor& a, const file_tensor& b,
                                              const std::function<void(std::uint64_t)>& progress);

// The differences of two sets of buffers of the same names: `expected`, and `got`.
comparison compare_buffers(const kernel_contract& contract, const call& context,
                           const bindings& names, const std::vector<buffer>& expected,
                           const std::vector<buffer>& got);

}  // namespace kvcts
