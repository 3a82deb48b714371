#include "vectors/hdf5_object.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace kvcts::hdf5 {
namespace {

std::string plural(std::uint64_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

bool is_scalar(const attribute_form& a) { return a.points == 1 && a.kind != attribute_kind::other; }

bool add_up(std::int64_t a, std::int64_t b, std::int64_t& sum) {
  return !__builtin_add_overflow(a, b, &sum);
}
bool multiply(std::int64_t a, std::int64_t b, std::int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

// Elements of the shape; no value past 2^63.
std::optional<std::int64_t> checked_count(const std::vector<std::int64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t n = 1;
  for (const std::int64_t dimension : shape) {
    if (!multiply(n, dimension, n)) return std::nullopt;
  }
  return n;
}

// As reach(), for extents that nobody has checked; no value past 2^63.
std::optional<std::int64_t> checked_reach(const extent& e) {
  std::int64_t last = e.offset;
  for (std::size_t i = 0; i < e.shape.size(); ++i) {
    if (e.shape[i] == 0) return e.offset;
    std::int64_t step = 0;
    if (!multiply(e.shape[i] - 1, e.strides[i], step) || !add_up(last, step, last)) {
      return std::nullopt;
    }
  }
  if (!add_up(last, 1, last)) return std::nullopt;
  return last;
}

std::string_view storage_name(dtype type) {
  switch (type) {
    case dtype::bf16:
      return "u16";
    case dtype::f32:
      return "f32";
    case dtype::i32:
      return "i32";
    case dtype::i64:
      return "i64";
    default:
      return "u8";
  }
}

[[noreturn]] void fail_size(const place& at, std::uint64_t bytes, std::uint64_t budget) {
  at.fail("declares " + std::to_string(bytes) + " bytes, and " + std::to_string(budget) +
          " may be used: free memory, or write smaller cases");
}

}  // namespace

place place::in(std::string_view name) const { return {file, object + "/" + shortened(name)}; }

void place::fail(std::string_view what) const {
  throw input_error(file + ": " + (object.empty() ? "" : object + ": ") + std::string(what));
}

std::string text_of(const std::vector<std::int64_t>& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(list[i]);
  }
  return text + "]";
}

bool readable(const handle& object, const std::string& name, const place& at) {
  const std::optional<attribute_form> a = form_of(object, name, at);
  return a && is_scalar(*a);
}

std::optional<attribute_value> attribute(const handle& object, const std::string& name,
                                         const place& at) {
  const std::optional<attribute_form> a = form_of(object, name, at);
  if (!a) return std::nullopt;
  if (is_scalar(*a)) {
    if (a->kind == attribute_kind::text) return read_texts(object, name, at).front();
    if (a->kind == attribute_kind::real) return read_real(object, name, at);
    if (const std::optional<integers> found = read_integers(object, name, at)) {
      const std::int64_t value = found->values.front();
      if (found->is_unsigned && value < 0) {
        return std::to_string(static_cast<std::uint64_t>(value));
      }
      return value;
    }
  }
  at.fail("attribute " + shortened(name) + " is " +
          (a->points == 1 ? "" : plural(a->points, "element") + " of ") + a->type +
          ": store a single integer, real or text");
}

std::optional<std::string> text_attribute(const handle& object, const std::string& name,
                                          const place& at) {
  std::optional<attribute_value> value = attribute(object, name, at);
  if (!value) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&*value)) return *text;
  at.fail("attribute " + shortened(name) + " is a number: store text");
}

std::optional<std::int64_t> integer_attribute(const handle& object, const std::string& name,
                                              const place& at) {
  std::optional<attribute_value> value = attribute(object, name, at);
  if (!value) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&*value)) return *integer;
  at.fail("attribute " + shortened(name) + " is not an integer of 64 bits: store an integer");
}

std::optional<std::vector<std::string>> text_list(const handle& object, const std::string& name,
                                                  const place& at) {
  const std::optional<attribute_form> a = form_of(object, name, at);
  if (!a) return std::nullopt;
  if (a->points == 0) return std::vector<std::string>{};
  if (a->kind != attribute_kind::text) {
    at.fail("attribute " + shortened(name) + " is " + a->type + ": store an array of strings");
  }
  return read_texts(object, name, at);
}

std::optional<std::vector<std::int64_t>> integer_list(const handle& object, const std::string& name,
                                                      const place& at) {
  const std::optional<attribute_form> a = form_of(object, name, at);
  if (!a) return std::nullopt;
  // The shape of a single number is an empty list, which h5py stores as reals.
  if (a->points == 0) return std::vector<std::int64_t>{};
  std::optional<integers> found;
  if (a->kind == attribute_kind::integer) found = read_integers(object, name, at);
  if (!found) {
    at.fail("attribute " + shortened(name) + " is " + a->type + ": store an array of integers");
  }
  if (found->is_unsigned) {
    for (const std::int64_t value : found->values) {
      if (value < 0) at.fail("attribute " + shortened(name) + " has a value past 2^63");
    }
  }
  return found->values;
}

unusable::unusable(const place& at, std::string_view what)
    : input_error(at.file + ": " + at.object + ": " + std::string(what)), why(what) {}

stored_tensor::stored_tensor(const handle& group, const std::string& name, const place& at,
                             const stored_tensor* like)
    : name_(name), place_(at), dataset_(group, name, at) {
  const handle& object = dataset_.object();
  const std::optional<std::string> type_name = text_attribute(object, "dtype", at);
  if (type_name) {
    const std::optional<dtype> type = dtype_from_name(*type_name);
    if (!type) {
      throw unusable(at, "dtype \"" + shortened(*type_name) +
                             "\" is unknown: use bf16, f32, f8e4m3fn, f8e4m3fnuz, ue8m0, e2m1x2, "
                             "u8, i32, i64 or bool");
    }
    type_ = *type;
  } else if (like != nullptr) {
    type_ = like->type_;
  } else {
    throw unusable(at, "lacks the attribute dtype: add it, see docs/vectors.md");
  }
  if (!dataset_.holds(type_)) {
    throw unusable(at, "is stored as " + dataset_.type() + ", and dtype " +
                           std::string(name_of(type_)) + " is stored as " +
                           std::string(storage_name(type_)) + ": store it so");
  }

  // The stored shape.
  if (!dataset_.shape()) throw unusable(at, "has no elements and no shape: store an array");
  std::vector<std::int64_t>& shape = shape_;
  for (const std::uint64_t dimension : *dataset_.shape()) {
    if (dimension > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      at.fail("has a dimension past 2^63: the file is damaged, write it again");
    }
    shape.push_back(static_cast<std::int64_t>(dimension));
  }
  const std::size_t rank = shape.size();
  const std::optional<std::int64_t> elements = checked_count(shape);
  std::int64_t bytes = 0;
  const auto element = static_cast<std::int64_t>(size_of(type_));
  if (!elements || !multiply(*elements, element, bytes)) {
    at.fail("has shape " + text_of(shape) + ", more than 2^63 bytes: the file is damaged, " +
            "write it again");
  }

  // The tensor inside the storage.
  const auto at_shape = integer_list(object, "shape", at);
  const auto at_strides = integer_list(object, "strides", at);
  const auto at_offset = integer_attribute(object, "offset", at);
  if (at_shape || at_strides || at_offset) {
    if (!at_shape || !at_strides || !at_offset) {
      const std::string_view missing = !at_shape ? "shape" : !at_strides ? "strides" : "offset";
      throw unusable(at, "lacks the attribute " + std::string(missing) +
                             ": flat storage has shape, strides and offset, dense storage none");
    }
    if (rank != 1) {
      throw unusable(at, "has shape, strides and offset and " + std::to_string(rank) +
                             " dimensions: store flat storage in one dimension");
    }
    at_ = {*at_shape, *at_strides, *at_offset};
    if (at_.shape.size() != at_.strides.size()) {
      throw unusable(at, "has shape " + text_of(at_.shape) + " and strides " +
                             text_of(at_.strides) + ": give one stride a dimension");
    }
    if (at_.shape.size() > max_rank) {
      throw unusable(at, "has " + std::to_string(at_.shape.size()) + " dimensions: use at most 32");
    }
    const auto negative = [](std::int64_t value) { return value < 0; };
    if (std::any_of(at_.shape.begin(), at_.shape.end(), negative) ||
        std::any_of(at_.strides.begin(), at_.strides.end(), negative) || at_.offset < 0) {
      throw unusable(at, "has shape " + text_of(at_.shape) + ", strides " + text_of(at_.strides) +
                             " and offset " + std::to_string(at_.offset) +
                             ": none may be negative");
    }
    const std::optional<std::int64_t> reached = checked_reach(at_);
    if (!checked_count(at_.shape) || !reached || *reached > *elements) {
      throw unusable(
          at, "shape " + text_of(at_.shape) + ", strides " + text_of(at_.strides) + " and offset " +
                  std::to_string(at_.offset) + " leave the storage of " +
                  plural(static_cast<std::uint64_t>(*elements), "element") + ": store all of it");
    }
  } else {
    at_ = dense(shape);
    const bool flat_like = like != nullptr && rank == 1 && !(like->at_ == at_) &&
                           *elements == static_cast<std::int64_t>(like->bytes_) / element;
    if (flat_like) at_ = like->at_;
  }

  bytes_ = static_cast<std::uint64_t>(bytes);
  const std::uint64_t row = rank > 0 && shape[0] > 0 ? bytes_ / shape[0] : bytes_;
  piece_ = dataset_.check_storage(row, static_cast<std::size_t>(element));
  // Data that is not there: deflate makes bytes 1032 times smaller at most.
  constexpr std::uint64_t small = std::uint64_t{64} << 20;
  if (bytes_ > small && bytes_ / 2000 > dataset_.stored_bytes()) {
    const std::uint64_t budget = memory_limit();
    if (bytes_ > budget) fail_size(at, bytes_, budget);
  }
}

buffer stored_tensor::read_all(std::uint64_t& budget) const {
  buffer to;
  to.name = name_;
  to.type = type_;
  to.at = at_;
  if (bytes_ > budget) fail_size(place_, bytes_, budget);
  budget -= bytes_;
  try {
    to.bytes.resize(static_cast<std::size_t>(bytes_));
  } catch (const std::bad_alloc&) {
    place_.fail("declares " + std::to_string(bytes_) +
                " bytes, more than can be had: free memory, or write smaller cases");
  }
  if (bytes_ != 0) dataset_.read_all(to.bytes.data());
  return to;
}

void stored_tensor::read(const byte_range& range, std::byte* to) const {
  const std::uint64_t element = size_of(type_);
  std::vector<std::uint64_t> from(shape_.size(), 0);
  read(0, from, range.first / element, range.bytes / element, to);
}

// `first` and `elements` count inside from[0 .. axis): whole indices of the axis in one box, the
// beginnings and ends of one by the next axis.
void stored_tensor::read(std::size_t axis, std::vector<std::uint64_t>& from, std::uint64_t first,
                         std::uint64_t elements, std::byte* to) const {
  if (elements == 0) return;
  std::vector<std::uint64_t> size(shape_.size(), 1);
  if (shape_.empty()) return dataset_.read_box(from, size, to);
  std::uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape_.size(); ++i) inner *= shape_[i];
  for (std::uint64_t done = 0; done < elements;) {
    from[axis] = (first + done) / inner;
    const std::uint64_t inside = (first + done) % inner;
    const std::uint64_t left = elements - done;
    std::uint64_t taken = std::min(inner - inside, left);
    if (taken == inner) {
      taken = left - left % inner;
      size[axis] = taken / inner;
      for (std::size_t i = axis + 1; i < shape_.size(); ++i) {
        from[i] = 0;
        size[i] = shape_[i];
      }
      dataset_.read_box(from, size, to + done * size_of(type_));
    } else {
      read(axis + 1, from, inside, taken, to + done * size_of(type_));
    }
    done += taken;
  }
}

}  // namespace kvcts::hdf5
