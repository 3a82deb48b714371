// The schema's attributes and tensors, of the tree that hdf5_tree.h gives.
#pragma once

#include "vectors/hdf5_tree.h"

namespace kvcts::hdf5 {

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

  std::string name_;
  place place_;
  stored_dataset dataset_;
  dtype type_ = dtype::u8;
  extent at_;
  std::vector<std::int64_t> shape_;  // as stored
  std::uint64_t bytes_ = 0, piece_ = 0;
};

}  // namespace kvcts::hdf5
