// Maps of buffers: where bytes differ, as strips to scale (runner/result.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/runner/result.h"
#include "reference/layout/paged.h"
#include "reference/layout/tensor.h"

namespace kvcts {

// Bytes of one storage that differ: runs in increasing order, of which a bounded number is kept.
class wrong_bytes {
 public:
  void add(std::uint64_t byte);
  const std::vector<byte_run>& runs() const { return runs_; }
  bool all_kept() const { return all_kept_; }

 private:
  std::vector<byte_run> runs_;
  bool all_kept_ = true;
};

// The whole buffer, the first pages and the first tokens with wrong bytes. `name_of` names the
// token at (page, position).
buffer_picture draw_pages(
    const paged_view& view, std::uint64_t bytes, const wrong_bytes& wrong,
    const std::function<std::string(std::int64_t page, std::int64_t position)>& name_of);

// "tokens", "blocks of 32 dims".
std::string plural(std::string_view one);

// A tensor of any strides, by rows: one step of its slowest axis.
struct row_drawing {
  extent at;
  std::int64_t element_bytes = 1;
  std::vector<std::size_t> by_stride;  // axes, the slowest first
  std::string row;                     // "token"
  std::string elements;                // "dims"
  bool scales = false;
};
buffer_picture draw_rows(const row_drawing& drawing, std::uint64_t bytes, const wrong_bytes& wrong);

// Keeps the pictures of the first failures of each kernel: however a run is cut into shards, those
// of the whole are among what the shards keep.
class picture_budget {
 public:
  void limit(case_result& c);

 private:
  std::map<std::string, std::size_t> of_kernel_;
};

}  // namespace kvcts
