// Vector files: HDF5 by the schema of docs/vectors.md. Every error is an input_error that names the
// file and the object in it. HDF5 is entered by one thread at a time, whoever calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vectors/suite.h"

namespace kvcts {

// The root attribute `schema`: "kvcts-vectors", "kvcts-reduction-trees" or another text. Throws
// input_error: no such file, not HDF5, truncated, no schema.
std::string schema_of(const std::string& path);

namespace hdf5 {
class stored_tensor;
}

// A tensor of a file, whose bytes are read by ranges: it may be larger than the memory.
class file_tensor {
 public:
  explicit file_tensor(std::unique_ptr<const hdf5::stored_tensor> stored);
  const std::string& name() const;
  dtype type() const;
  const extent& at() const;
  std::uint64_t bytes() const;  // of the whole storage
  // Bytes that one read should take: about 16 MiB, and whole chunks where they allow it.
  std::uint64_t piece() const;
  // Of the storage, whole elements.
  void read(const byte_range& range, std::byte* to) const;
  const hdf5::stored_tensor& stored() const { return *stored_; }

 private:
  std::shared_ptr<const hdf5::stored_tensor> stored_;
};

// A case without its bytes.
struct case_outline {
  std::string kernel, name;
  std::vector<std::string> flags;
  attribute_map attributes;
  std::vector<file_tensor> inputs, expected, actual;
  std::vector<unusable_buffer> unusable_actual;
  // Of `inputs`, those that hold numbers of slots, pages, tokens: what places and checks need.
  // vector_file::check() reads them.
  std::vector<buffer> indices;

  // The call's inputs. Only those of `indices` may be read; the others have no bytes behind them.
  call inputs_only() const;
};
// Null where there is none of the name.
const file_tensor* find_tensor(const std::vector<file_tensor>& in, std::string_view name);

// Opens lazily: names first, one case at a time.
class vector_file {
 public:
  // Throws input_error: not HDF5, truncated, another schema or version.
  explicit vector_file(const std::string& path);
  ~vector_file();
  vector_file(vector_file&&) noexcept;

  const suite_info& info() const;
  struct entry {
    std::string kernel, name;
  };
  // Sorted by kernel, then name.
  const std::vector<entry>& cases() const;
  // Checks names, dtypes, shapes and storage against the kernel's contract: a call built of the
  // case's inputs passes check(). `expected` must be complete and of the contract's shapes.
  test_case read(const entry& which) const;
  // The same without the contract: of any kernel, what is there. Extents stay inside their storage.
  test_case decode(const entry& which) const;
  // Has the group of what a candidate filled in.
  bool has_actual(const entry& which) const;
  // decode() without the bytes.
  case_outline outline(const entry& which) const;
  // read()'s checks of an outline: its inputs, and, where `expected_too`, `expected`. Reads the
  // indices. Gives the bound names.
  bindings check(case_outline& c, bool expected_too) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// Reads the cases of a file one after the other, so that one is in memory at a time. `wanted`
// chooses (null: all). The tool for checks and comparisons over a whole file.
void for_each_case(const vector_file& file,
                   const std::function<bool(const vector_file::entry&)>& wanted,
                   const std::function<void(const test_case&)>& use);

// Writes a new file, or replaces one: to a temporary beside it, then renamed, so that a failure
// leaves nothing. The same suite gives the same bytes on one HDF5 version. Equal datasets are hard
// links to one another.
void write_vectors(const std::string& path, const suite& s);

// The same, a case at a time.
class vector_writer {
 public:
  // Throws input_error where the file cannot be written.
  vector_writer(const std::string& path, const suite_info& info);
  // Takes the temporary away unless finish() has renamed it.
  ~vector_writer();
  vector_writer(const vector_writer&) = delete;
  vector_writer& operator=(const vector_writer&) = delete;

  // Sorted by kernel, then name; throws std::logic_error where they come in another order.
  void add(const test_case& c);
  void finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// Runs `probe PATH` of this program in a child process (it opens and decodes every object), since a
// damaged file can crash the HDF5 library itself. Throws input_error "PATH is damaged ..." where
// the child crashed or hung. Call it before the first vector_file on a file from outside. Both
// schemas are taken. `program` is another program with that subcommand; where it is empty, the
// environment variable KVCTS_PROBE_PROGRAM, then the running program. KVCTS_PROBE_SECONDS limits
// the wall-clock time without a sign of progress (default 120). `progress` is called twice a second
// and more; what it throws ends the child.
struct probe_progress {
  std::uint64_t cases = 0, all_cases = 0, bytes = 0;  // decoded
};
void probe_vectors(const std::string& path, const std::string& program = {},
                   const std::function<void(const probe_progress&)>& progress = {});

// SHA-256, lower-case hex.
std::string sha256(const std::byte* data, std::size_t bytes);
// Of a storage: its bytes, or, where it has holes, each page of 4096 that is not zero, behind its
// offset.
std::string content_digest(const std::byte* data, std::size_t bytes, const holed_storage* holes);
// Digest of canonical content (kernel, name, flags, attributes, dtype, extent, bytes): of one case,
// and of a suite. Independent of HDF5, of the way a tensor is stored, and of `actual`.
std::string digest_of(const test_case& c);
std::string digest_of(const suite& s);
std::string digest_of(const vector_file& file);
// Of a suite whose cases have these digests, in any order.
std::string digest_of(std::string_view profile, std::vector<std::string> case_digests);

}  // namespace kvcts
