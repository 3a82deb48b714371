// What a file is to the schema's reader: groups, attributes and datasets. hdf5_tree.cpp finds them
// in HDF5; another implementation may keep them in memory. hdf5.h itself stays inside .cpp files.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/printable.h"
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
// Text from a file, fit for one line of a message.
inline std::string shortened(std::string_view text) { return printable(text, 120); }

constexpr std::string_view damaged = "cannot be read: the file is damaged, write it again";
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

enum class attribute_kind : std::uint8_t { text, integer, real, other };
struct attribute_form {
  attribute_kind kind = attribute_kind::other;
  std::uint64_t points = 0;  // elements
  std::string type;          // "8-byte float", for messages
};
// No value where the attribute is absent. The three below read all elements of one that is there
// and of the kind.
std::optional<attribute_form> form_of(const handle& object, const std::string& name,
                                      const place& at);
std::vector<std::string> read_texts(const handle& object, const std::string& name, const place& at);
// Integers and enumerations of integers (h5py's booleans are one), as the sign says.
struct integers {
  bool is_unsigned = false;
  std::vector<std::int64_t> values;  // the bits of a u64 where is_unsigned
};
// No value where the stored size is none of this machine's.
std::optional<integers> read_integers(const handle& object, const std::string& name,
                                      const place& at);
double read_real(const handle& object, const std::string& name, const place& at);

// Bytes that the tensors of one case may take: what a reader may allocate, so that a file which
// declares terabytes ends in a message.
std::uint64_t memory_limit();

constexpr std::size_t max_rank = 32;  // of HDF5

// One dataset, open.
class stored_dataset {
 public:
  stored_dataset(const handle& group, const std::string& name, const place& at);

  const handle& object() const { return dataset_; }
  const std::string& type() const { return type_; }  // "8-byte float", for messages
  // As stored; no value where there are no elements and no shape.
  const std::optional<std::vector<std::uint64_t>>& shape() const { return shape_; }
  // True where the stored type is that of the dtype. Reads then give its bits.
  bool holds(dtype type);
  // Refuses data that lies outside the file, and filters that this HDF5 has not got. Gives the
  // bytes of a piece; `row` is the bytes of one index of the first dimension.
  std::uint64_t check_storage(std::uint64_t row, std::size_t element) const;
  std::uint64_t stored_bytes() const;  // compressed

  void read_all(std::byte* to) const;
  void read_box(const std::vector<std::uint64_t>& from, const std::vector<std::uint64_t>& size,
                std::byte* to) const;

 private:
  place place_;
  handle dataset_, memory_;
  std::string type_;
  std::optional<std::vector<std::uint64_t>> shape_;
};

}  // namespace kvcts::hdf5
