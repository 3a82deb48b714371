// From a byte of a buffer to its place in the user's terms.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/compare/picture.h"
#include "conformance/compare/value.h"
#include "reference/contract/contract.h"

namespace kvcts {

// What a run of elements inside one row or record is called.
struct part {
  std::string_view one,
      many;  // "value of dim", "values of dims"; `one` alone where it has no index
  bool indexed = true;
  std::int64_t width = 1;   // dims an index covers
  bool index_shown = true;  // false: only the dims are named
  bool dims_shown = false;  // "(dims 96..127)" after the index
};

struct spot {
  // Coordinates from the slowest to the fastest: token, head; or token, slot, page, position. -1
  // where one does not apply.
  std::vector<std::int64_t> at;
  const part* what = nullptr;
  std::int64_t index = 0;  // of `what`
  value_kind kind = value_kind::byte;
  std::uint64_t first_byte = 0;  // of the element, from the start of the storage
  std::string_view remark;       // "padded: must be 0", "must not change"; of static storage
};

class place_finder {
 public:
  virtual ~place_finder() = default;
  // The byte's element. Elements of increasing bytes need not be in increasing places.
  virtual spot find(std::uint64_t byte) const = 0;
  // The coordinates (indices into `at`) that tell the finest groups apart (a row, a record), and
  // coarser ones (a token, a page).
  virtual std::vector<std::size_t> fine_key() const = 0;
  virtual std::vector<std::size_t> coarse_key() const = 0;
  // Text of the coordinates, each a range.
  using range = std::pair<std::int64_t, std::int64_t>;
  virtual std::string coordinates(const std::vector<range>& ranges) const = 0;
  // The storage, drawn; `argument` is left to the caller.
  virtual buffer_picture picture(std::uint64_t bytes, const wrong_bytes& wrong) const = 0;
};

// A finder for an argument of a call; `context` holds the call's inputs, `names` what check()
// bound.
std::unique_ptr<place_finder> find_places(const kernel_contract& contract, const call& context,
                                          const bindings& names, const argument_spec& argument,
                                          dtype type, const extent& at);

// "dim 5", "dims 4..5", "scale of block 3 (dims 96..127)", "bytes between pages".
std::string text_of(const part& what, std::int64_t first, std::int64_t last);

}  // namespace kvcts
