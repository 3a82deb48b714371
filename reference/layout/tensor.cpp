#include "reference/layout/tensor.h"

#include <array>
#include <limits>

namespace kvcts {
namespace {

struct dtype_row {
  dtype type;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<dtype_row, 10> dtypes{{
    {dtype::bf16, "bf16", 2},
    {dtype::f32, "f32", 4},
    {dtype::f8e4m3fn, "f8e4m3fn", 1},
    {dtype::f8e4m3fnuz, "f8e4m3fnuz", 1},
    {dtype::ue8m0, "ue8m0", 1},
    {dtype::e2m1x2, "e2m1x2", 1},
    {dtype::u8, "u8", 1},
    {dtype::i32, "i32", 4},
    {dtype::i64, "i64", 8},
    {dtype::boolean, "bool", 1},
}};

bool is_plain_byte(dtype type) {
  return type == dtype::u8 || type == dtype::ue8m0 || type == dtype::e2m1x2;
}

// Shapes and strides come from files: sums and products stop at the largest value instead of
// wrapping, so that they never look small.
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? largest : result;
}

std::int64_t total(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? largest : result;
}

[[noreturn]] void missing(const call& c, std::string_view kind, std::string_view name) {
  throw input_error(c.kernel + ": " + std::string(kind) + " '" + std::string(name) +
                    "' is missing: add it to the call");
}

const attribute_value& attribute(const call& c, std::string_view name) {
  const auto found = c.attributes.find(name);
  if (found == c.attributes.end()) {
    missing(c, "attribute", name);
  }
  return found->second;
}

[[noreturn]] void wrong_kind(const call& c, std::string_view name, std::string_view wanted) {
  throw input_error(c.kernel + ": attribute '" + std::string(name) + "' must be " +
                    std::string(wanted));
}

}  // namespace

std::size_t size_of(dtype type) { return dtypes[static_cast<std::size_t>(type)].size; }

std::string_view name_of(dtype type) { return dtypes[static_cast<std::size_t>(type)].name; }

std::optional<dtype> dtype_from_name(std::string_view name) {
  for (const dtype_row& row : dtypes) {
    if (row.name == name) {
      return row.type;
    }
  }
  return std::nullopt;
}

bool same_storage(dtype a, dtype b) { return a == b || (is_plain_byte(a) && is_plain_byte(b)); }

extent dense(std::vector<std::int64_t> shape) {
  extent e;
  e.strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    e.strides[axis] = stride;
    stride = product(stride, shape[axis]);
  }
  e.shape = std::move(shape);
  return e;
}

bool is_dense(const extent& e) {
  if (e.offset != 0 || e.strides.size() != e.shape.size()) {
    return false;
  }
  if (count(e.shape) == 0) {
    return true;
  }
  const extent plain = dense(e.shape);
  for (std::size_t axis = 0; axis < e.shape.size(); ++axis) {
    if (e.shape[axis] > 1 && e.strides[axis] != plain.strides[axis]) {
      return false;
    }
  }
  return true;
}

std::int64_t count(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size == 0) {
      return 0;
    }
    elements = product(elements, size);
  }
  return elements;
}

std::int64_t reach(const extent& e) {
  if (count(e.shape) == 0) {
    return e.offset;
  }
  std::int64_t end = total(e.offset, 1);
  for (std::size_t axis = 0; axis < e.shape.size(); ++axis) {
    end = total(end, product(e.shape[axis] - 1, e.strides[axis]));
  }
  return end;
}

const tensor_view* call::find(std::string_view name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

const tensor_view& call::tensor(std::string_view name) const {
  const tensor_view* view = find(name);
  if (view == nullptr) {
    missing(*this, "argument", name);
  }
  return *view;
}

std::int64_t call::integer(std::string_view name) const {
  const auto* value = std::get_if<std::int64_t>(&attribute(*this, name));
  if (value == nullptr) {
    wrong_kind(*this, name, "an integer");
  }
  return *value;
}

std::int64_t call::integer_or(std::string_view name, std::int64_t fallback) const {
  return attributes.find(name) == attributes.end() ? fallback : integer(name);
}

float call::real(std::string_view name) const {
  const auto* value = std::get_if<double>(&attribute(*this, name));
  if (value == nullptr) {
    wrong_kind(*this, name, "a real number");
  }
  return static_cast<float>(*value);
}

const std::string& call::text(std::string_view name) const {
  const auto* value = std::get_if<std::string>(&attribute(*this, name));
  if (value == nullptr) {
    wrong_kind(*this, name, "text");
  }
  return *value;
}

std::string call::text_or(std::string_view name, std::string_view fallback) const {
  return attributes.find(name) == attributes.end() ? std::string(fallback) : text(name);
}

}  // namespace kvcts
