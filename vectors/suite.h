// A suite of test vectors in memory, as docs/vectors.md lays it down in HDF5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/contract.h"
#include "reference/layout/tensor.h"
#include "vectors/sparse.h"

namespace kvcts {

constexpr std::byte canary{0xCC};
constexpr std::byte second_canary{0x33};
constexpr int schema_version = 1;

// One dataset: the whole storage of a tensor, guards included. The storage is `bytes`, or `sparse`
// where that is not empty: zero at first instead of canary, in memory only, in no file.
struct buffer {
  std::string name;
  dtype type = dtype::u8;
  extent at;
  std::vector<std::byte> bytes;
  sparse_memory sparse = {};

  bool is_sparse() const { return !sparse.empty(); }
  std::size_t size() const { return is_sparse() ? sparse.size() : bytes.size(); }
  const std::byte* data() const { return is_sparse() ? sparse.data() : bytes.data(); }
  const holed_storage* holes() const { return is_sparse() ? &sparse : nullptr; }
  tensor_view view();
  // For reading only: a tensor_view has no const form, and no reader writes through it.
  tensor_view view() const;
};

// An `actual` dataset that is there but cannot be taken as the candidate's bytes.
struct unusable_buffer {
  std::string name;
  std::string why;  // "stored as 8-byte float, which dtype bf16 is not", ...
};

struct test_case {
  std::string kernel;
  std::string name;
  std::vector<std::string> flags;
  attribute_map attributes;
  std::vector<buffer> inputs;    // also the initial content of updated arguments
  std::vector<buffer> expected;  // final content of every output and updated argument
  std::vector<buffer> actual;    // the same, filled by a candidate
  std::vector<unusable_buffer> unusable_actual;  // of `actual`: not a bad file, but not conforming

  const buffer* input(std::string_view name) const;
  bool is_sparse() const;  // one of its buffers is
};

// Null where there is none of the name.
const buffer* find_buffer(const std::vector<buffer>& in, std::string_view name);
const kernel_contract* find_contract(std::string_view kernel);

struct suite_info {
  std::string profile = "nvidia";
  std::string producer;
  std::uint64_t seed = 0;
  attribute_map others;  // generator version, suite digest, ...
};

struct suite {
  suite_info info;
  std::vector<test_case> cases;  // sorted by kernel, then name
};

}  // namespace kvcts
