// Tensors as the kernels see them: memory that somebody else owns, a dtype, a shape, and strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kvcts {

// The element types of docs/formats.md. `u8`, `ue8m0` and `e2m1x2` name the same stored bytes.
enum class dtype : std::uint8_t {
  bf16,
  f32,
  f8e4m3fn,
  f8e4m3fnuz,
  ue8m0,
  e2m1x2,
  u8,
  i32,
  i64,
  boolean
};

// Bytes of one stored element.
std::size_t size_of(dtype type);
// The name used in vector files, reports and messages: "bf16", "f8e4m3fn", "bool", ...
std::string_view name_of(dtype type);
std::optional<dtype> dtype_from_name(std::string_view name);
// True where both dtypes name the same stored bytes (equal, or both of u8, ue8m0, e2m1x2).
bool same_storage(dtype a, dtype b);

// Bad input: the message is one line that names the thing and how to mend it. Exit status 2.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Shape, strides and offset in elements. Strides are never negative.
struct extent {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;

  bool operator==(const extent&) const = default;
};

// Row-major extent without gaps.
extent dense(std::vector<std::int64_t> shape);
// True where strides are those of dense(shape) (dimensions of size 1 or 0 do not count) and offset
// is 0.
bool is_dense(const extent& e);
// Elements of the shape (0 where a dimension is 0).
std::int64_t count(const std::vector<std::int64_t>& shape);
// Elements of storage that the extent reaches: offset + last element + 1; `offset` if it is empty.
std::int64_t reach(const extent& e);

struct byte_range {
  std::uint64_t first = 0, bytes = 0;
};

// Storage that is zero but for some ranges: what copies or compares a whole storage needs no more
// than these.
class holed_storage {
 public:
  virtual ~holed_storage() = default;
  // Ranges of the storage, in order, that may hold other bytes than zero.
  virtual std::vector<byte_range> written() const = 0;

 protected:
  holed_storage() = default;
  holed_storage(const holed_storage&) = default;
  holed_storage& operator=(const holed_storage&) = default;
};

struct tensor_view {
  std::byte* storage = nullptr;  // first byte of the whole buffer, guards included
  std::size_t storage_bytes = 0;
  dtype type = dtype::u8;
  extent at;
  const holed_storage* holes = nullptr;  // where the storage has some

  std::int64_t dim(std::size_t axis) const { return at.shape[axis]; }
  std::int64_t stride(std::size_t axis) const { return at.strides[axis]; }
  std::size_t rank() const { return at.shape.size(); }
  // The element's first byte. 64-bit arithmetic throughout; no bounds are checked here.
  std::byte* element(std::int64_t i) const { return bytes_at(i * at.strides[0]); }
  std::byte* element(std::int64_t i, std::int64_t j) const {
    return bytes_at(i * at.strides[0] + j * at.strides[1]);
  }
  std::byte* element(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return bytes_at(i * at.strides[0] + j * at.strides[1] + k * at.strides[2]);
  }

 private:
  std::byte* bytes_at(std::int64_t index) const {
    return storage + (at.offset + index) * static_cast<std::int64_t>(size_of(type));
  }
};

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Scalar attributes: booleans are integers 0 and 1; reals are rounded to f32 where they are used.
using attribute_value = std::variant<std::int64_t, double, std::string>;
using attribute_map = std::map<std::string, attribute_value, std::less<>>;

// One call of a kernel: every tensor it reads, updates or writes, by name, and its attributes. An
// argument updated in place is there once. An absent optional argument is not in the list.
struct call {
  std::string kernel;
  std::map<std::string, tensor_view, std::less<>> tensors;
  attribute_map attributes;

  const tensor_view* find(std::string_view name) const;
  // Throws input_error where the argument is absent.
  const tensor_view& tensor(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer_or(std::string_view name, std::int64_t fallback) const;
  // The attribute rounded to f32 (round to nearest even).
  float real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string_view fallback) const;
};

}  // namespace kvcts
