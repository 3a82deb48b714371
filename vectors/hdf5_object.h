// What the readers and the writer share of HDF5. hdf5.h itself stays inside the .cpp files.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vectors/suite.h"

namespace kvcts::hdf5 {

// An HDF5 identifier, closed with its owner. Negative: the call that made it failed.
class handle {
 public:
  using id_type = std::int64_t;  // hid_t

  handle() = default;
  explicit handle(id_type id) : id_(id) {}
  handle(handle&& from) noexcept;
  handle& operator=(handle&& from) noexcept;
  ~handle();

  id_type id() const { return id_; }
  bool ok() const { return id_ >= 0; }
  // Closes it now; false where HDF5 says that this failed (a full disk shows here).
  bool close();

 private:
  id_type id_ = -1;
};

// Held by every public entry point: HDF5 is entered by one thread at a time. It also silences the
// error printing of HDF5 for the thread.
class library_lock {
 public:
  library_lock();

 private:
  std::lock_guard<std::recursive_mutex> guard_;
};

// Where in a file something is, for messages.
struct place {
  std::string file;
  std::string object;  // "/kernel/case/inputs/k"; empty for the file itself

  place in(std::string_view name) const;
  // Throws input_error "FILE: OBJECT: what", one line.
  [[noreturn]] void fail(std::string_view what) const;
};

// "[2, 4, 584]".
std::string text_of(const std::vector<std::int64_t>& list);
// Text from a file, fit for one line of a message: control characters are escaped, long text is
// cut.
std::string printable(std::string_view text);

// The innermost reason on HDF5's error stack, as " (HDF5: ...)", or empty.
std::string reason();

// Opens for reading; tells missing, not a file, not HDF5 and damaged files apart.
handle open_file(const place& at);

// Names in a group, sorted bytewise. Refuses soft and external links: a file holds its data itself.
std::vector<std::string> names(const handle& group, const place& at);
bool has(const handle& group, const std::string& name, const place& at);
// `at` is the place of the group itself.
handle open_group(const handle& parent, const std::string& name, const place& at);

std::vector<std::string> attribute_names(const handle& object, const place& at);
// No value where the attribute is absent. `readable` attributes are scalars (or arrays of one) that
// attribute_value can hold: integers, reals, booleans, strings. An unsigned value past INT64_MAX is
// given as decimal text. Throws where the attribute is there but is not of that kind.
std::optional<attribute_value> attribute(const handle& object, const std::string& name,
                                         const place& at);
bool readable(const handle& object, const std::string& name, const place& at);
std::optional<std::string> text_attribute(const handle& object, const std::string& name,
                                          const place& at);
std::optional<std::int64_t> integer_attribute(const handle& object, const std::string& name,
                                              const place& at);
// A list of strings; a single one counts as a list, and an empty array of any type as no string.
std::optional<std::vector<std::string>> text_list(const handle& object, const std::string& name,
                                                  const place& at);
std::optional<std::vector<std::int64_t>> integer_list(const handle& object, const std::string& name,
                                                      const place& at);

// Bytes that the tensors of one case may take: what a reader may allocate, so that a file which
// declares terabytes ends in a message.
std::uint64_t memory_limit();

// A dataset whose content cannot be taken for a tensor (dtype, shape, strides) throws unusable,
// anything else plain input_error.
class unusable : public input_error {
 public:
  unusable(const place& at, std::string_view what);
  std::string why;  // without the place
};

// One dataset as docs/vectors.md lays it down, open: what it is, and its bytes by ranges.
class stored_tensor {
 public:
  // Where `like` is given, a missing dtype is that of `like` if the stored type fits, and flat
  // storage of as many elements without shape, strides and offset takes those of `like`.
  stored_tensor(const handle& group, const std::string& name, const place& at,
                const stored_tensor* like = nullptr);

  const std::string& name() const { return name_; }
  dtype type() const { return type_; }
  const extent& at() const { return at_; }
  std::uint64_t bytes() const { return bytes_; }
  // Bytes that one read should take: about 16 MiB, and whole chunks where they allow it.
  std::uint64_t piece() const { return piece_; }

  // Range of the storage, of whole elements.
  void read(const byte_range& range, std::byte* to) const;
  // All of it; takes its bytes off `budget`.
  buffer read_all(std::uint64_t& budget) const;

 private:
  void read(std::size_t axis, std::vector<std::uint64_t>& from, std::uint64_t first,
            std::uint64_t elements, std::byte* to) const;
  void read_box(const std::vector<std::uint64_t>& from, const std::vector<std::uint64_t>& size,
                std::byte* to) const;

  std::string name_;
  place place_;
  handle dataset_, memory_;
  dtype type_ = dtype::u8;
  extent at_;
  std::vector<std::int64_t> shape_;  // as stored
  std::uint64_t bytes_ = 0, piece_ = 0;
};

}  // namespace kvcts::hdf5
