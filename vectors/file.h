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
// environment variable KVCTS_PROBE_PROGRAM, then the running program. KVCTS_PROBE_SECONDS is the
// wall-clock limit (default 120).
void probe_vectors(const std::string& path, const std::string& program = {});

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
