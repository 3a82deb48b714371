// The arguments of a call in the worker's memory, between pages without access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/candidate/kvcts_candidate.h"
#include "conformance/worker/protocol.h"

namespace kvcts::worker {

// As kvcts describes it.
struct argument {
  std::string name;
  kvcts_role role = KVCTS_INPUT;
  kvcts_dtype type = KVCTS_U8;
  std::vector<std::int64_t> shape, strides;
  int file = -1;                     // arena, or memory with holes of its own
  bool has_holes = false;            // then the file is zero but for what SEEK_DATA finds
  std::uint64_t file_offset = 0;     // of the mapping: a multiple of the page size
  std::uint64_t mapped_bytes = 0;    // a multiple of the page size
  std::uint64_t element_offset = 0;  // bytes from the mapping's start to element 0
};

class mapped_arguments {
 public:
  // Inputs are mapped for reading only, unless `all_writable`. Throws std::runtime_error.
  mapped_arguments(const std::vector<argument>& arguments, bool all_writable, status& shown);
  ~mapped_arguments();
  mapped_arguments(const mapped_arguments&) = delete;
  mapped_arguments& operator=(const mapped_arguments&) = delete;
  std::byte* at(std::size_t i) const { return starts_[i]; }

 private:
  std::byte* region_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<std::byte*> starts_;
};

}  // namespace kvcts::worker
