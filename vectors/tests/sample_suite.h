// A small suite made by hand, and places for files, shared by the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "vectors/file.h"

namespace kvcts::testing_tools {

// A folder of its own, taken away at the end.
class scratch {
 public:
  scratch();
  ~scratch();
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const;

 private:
  std::string folder_;
};

// Storage of pseudo-random bytes that holds the extent and `guards` elements more.
buffer filled(const std::string& name, dtype type, extent at, std::uint32_t seed,
              std::int64_t guards = 0);

// mxfp4_q_quant/t3_h2_p4: strided query with offset and guards.
// quantize_and_insert_k_cache/n5: page stride past the page; n5_skipped: all slots negative, so
// the final cache is the initial one; both have the same k.
// The bytes of `expected` are no kernel's: these tests are about files.
suite sample_suite();

// Throws std::runtime_error where there is none of the name.
buffer& find(std::vector<buffer>& in, const std::string& name);

std::string bytes_of_file(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

// What reading all of a file throws as input_error, or "" where it is read.
std::string error_of_reading(const std::string& path);

}  // namespace kvcts::testing_tools
