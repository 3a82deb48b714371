// The one argument check: reads a kernel's declaration and refuses a call that does not fit it.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "reference/contract/contract.h"

namespace kvcts {
namespace {

constexpr std::string_view any_dimensions = "...";

std::string numbers(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  }
  return text + "]";
}

template <class Items, class Text>
std::string joined(const Items& items, std::string_view between, Text text) {
  std::string result;
  for (const auto& item : items) {
    result += (result.empty() ? "" : std::string(between)) + std::string(text(item));
  }
  return result;
}

std::string dtype_list(const std::vector<dtype>& types) {
  return joined(types, " or ", [](dtype type) { return name_of(type); });
}

bool is_name(std::string_view text) {
  const std::vector<std::string> names = names_in(text);
  return names.size() == 1 && names[0] == text;
}

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// a + b * c, or -1 where that leaves 64 bits. Nothing negative comes in.
std::int64_t add_product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0;
  std::int64_t sum = 0;
  if (a < 0 || __builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(a, product, &sum)) {
    return -1;
  }
  return sum;
}

class checker {
 public:
  checker(const kernel_contract& contract, const call& context)
      : contract_(contract), call_(context) {
    call_.kernel = contract.name;
  }

  bindings run(bool outputs_too) {
    known_names_only();
    attributes();
    preconditions(true);
    presence(outputs_too);
    for (const argument_spec& spec : contract_.arguments) {
      if (const tensor_view* v = given(spec, outputs_too)) storage_form(spec, *v);
    }
    for (const argument_spec& spec : contract_.arguments) {
      if (spec.direction == role::output) continue;
      if (const tensor_view* v = given(spec, outputs_too)) bind(spec, *v);
    }
    bind_absent();
    conditional_presence(outputs_too);
    for (const argument_spec& spec : contract_.arguments) {
      if (const tensor_view* v = given(spec, outputs_too)) shape(spec, *v);
    }
    preconditions(false);
    for (const argument_spec& spec : contract_.arguments) {
      if (const tensor_view* v = given(spec, outputs_too)) memory(spec, *v);
    }
    if (contract_.check_indices != nullptr) contract_.check_indices(call_);
    return names_;
  }

  std::vector<output_shape> outputs(const bindings& names) {
    names_ = names;
    attributes();
    std::vector<output_shape> result;
    for (const argument_spec& spec : contract_.arguments) {
      if (spec.direction != role::output || !exists(spec)) continue;
      std::vector<std::int64_t> sizes;
      for (const std::string_view dimension : list_of(spec.shape)) {
        if (dimension == any_dimensions) {
          const std::vector<std::int64_t> further = further_dimensions();
          sizes.insert(sizes.end(), further.begin(), further.end());
        } else {
          sizes.push_back(value_of(spec.name, dimension));
        }
      }
      const dtype type = dtypes_of(spec).front();
      std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
      const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
      for (const std::int64_t size : sizes) {
        if (size < 0 || (!empty && __builtin_mul_overflow(bytes, size, &bytes))) {
          fail(spec.name, "would have the shape " + numbers(sizes) + ", which no memory holds");
        }
      }
      result.push_back({&spec, std::move(sizes), type});
    }
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view argument, const std::string& message) const {
    throw input_error(std::string(contract_.name) + ": " + std::string(argument) + ": " + message);
  }

  // An expression of an argument's: where its value has no 64 bits, that argument is at fault.
  std::int64_t value_of(std::string_view argument, std::string_view expression) const {
    try {
      return evaluate(expression, names_, call_);
    } catch (const input_error& e) {
      fail(argument, e.what());
    }
  }

  // The tensor to look at: outputs only where asked for.
  const tensor_view* given(const argument_spec& spec, bool outputs_too) const {
    if (spec.direction == role::output && !outputs_too) return nullptr;
    const auto found = call_.tensors.find(spec.name);
    return found == call_.tensors.end() ? nullptr : &found->second;
  }

  bool exists(const argument_spec& spec) const {
    return spec.when.empty() || evaluate(spec.when, names_, call_) != 0;
  }

  // The dtypes that the attributes and other arguments allow.
  std::vector<dtype> dtypes_of(const argument_spec& spec) const {
    const auto like = call_.tensors.find(spec.dtype_like);
    if (like != call_.tensors.end()) return {like->second.type};
    if (spec.dtype_when.empty()) return spec.dtypes;
    std::vector<dtype> allowed;
    for (std::size_t i = 0; i < spec.dtypes.size(); ++i) {
      if (evaluate(spec.dtype_when[i], names_, call_) != 0) allowed.push_back(spec.dtypes[i]);
    }
    return allowed.empty() ? spec.dtypes : allowed;
  }

  void known_names_only() const {
    for (const auto& [name, view] : call_.tensors) {
      if (contract_.argument(name) != nullptr) continue;
      fail(name, "is no argument of this kernel; it has " +
                     joined(contract_.arguments, ", ", [](const auto& s) { return s.name; }));
    }
    for (const auto& [name, value] : call_.attributes) {
      if (contract_.attribute(name) != nullptr) continue;
      fail(name, "is no attribute of this kernel; it has " +
                     joined(contract_.attributes, ", ", [](const auto& s) { return s.name; }));
    }
  }

  // Checks kinds and choices, fills in fallbacks, makes integers and booleans names.
  void attributes() {
    for (const attribute_spec& spec : contract_.attributes) {
      auto found = call_.attributes.find(spec.name);
      if (found == call_.attributes.end()) {
        if (!spec.optional) fail(spec.name, "is missing: the attribute is " + kind_text(spec));
        found = call_.attributes.emplace(std::string(spec.name), fallback(spec)).first;
      }
      attribute(spec, found->second);
    }
  }

  attribute_value fallback(const attribute_spec& spec) const {
    if (spec.kind == attribute_kind::text) return std::string(spec.fallback);
    if (spec.kind == attribute_kind::real) {
      return std::strtod(std::string(spec.fallback).c_str(), nullptr);
    }
    return evaluate(spec.fallback, names_, call_);
  }

  void attribute(const attribute_spec& spec, const attribute_value& value) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    const auto* text = std::get_if<std::string>(&value);
    const std::string given = text != nullptr      ? "'" + *text + "'"
                              : integer != nullptr ? std::to_string(*integer)
                                                   : std::to_string(std::get<double>(value));
    bool fits = false;
    switch (spec.kind) {
      case attribute_kind::integer:
        fits = integer != nullptr;
        break;
      case attribute_kind::boolean:
        fits = integer != nullptr && (*integer == 0 || *integer == 1);
        break;
      case attribute_kind::real:
        fits = std::holds_alternative<double>(value);
        break;
      case attribute_kind::text:
        fits = text != nullptr &&
               (spec.choices.empty() ||
                std::find(spec.choices.begin(), spec.choices.end(), *text) != spec.choices.end());
        break;
    }
    if (!fits) fail(spec.name, "is " + given + ", must be " + kind_text(spec));
    if (spec.kind == attribute_kind::integer || spec.kind == attribute_kind::boolean) {
      names_.insert_or_assign(std::string(spec.name), *integer);
    }
  }

  static std::string kind_text(const attribute_spec& spec) {
    switch (spec.kind) {
      case attribute_kind::integer:
        return "an integer";
      case attribute_kind::boolean:
        return "0 or 1";
      case attribute_kind::real:
        return "a real number (1.0, not 1)";
      case attribute_kind::text:
        break;
    }
    if (spec.choices.empty()) return "text";
    return joined(spec.choices, " or ",
                  [](auto choice) { return "'" + std::string(choice) + "'"; });
  }

  // Those over attributes alone run first: a block size of 0 is said before a shape that follows
  // from it.
  void preconditions(bool of_attributes) const {
    for (const precondition& rule : contract_.preconditions) {
      if (over_attributes(rule.holds) != of_attributes) continue;
      if (value_of(rule.argument, rule.holds) == 0) fail(rule.argument, filled_in(rule.message));
    }
  }

  bool over_attributes(std::string_view expression) const {
    if (expression.find("has(") != std::string_view::npos) return false;
    for (const std::string& name : names_in(expression)) {
      if (contract_.attribute(name) == nullptr) return false;
    }
    return true;
  }

  std::string filled_in(std::string_view message) const {
    std::string result;
    for (;;) {
      const std::size_t open = message.find('{');
      const std::size_t close = message.find('}', open);
      if (close == std::string_view::npos) return result + std::string(message);
      result += message.substr(0, open);
      const std::string_view name = message.substr(open + 1, close - open - 1);
      const auto found = call_.attributes.find(name);
      const auto* text =
          found == call_.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
      result += text != nullptr ? *text : std::to_string(evaluate(name, names_, call_));
      message.remove_prefix(close + 1);
    }
  }

  void presence(bool outputs_too) const {
    for (const argument_spec& spec : contract_.arguments) {
      if (spec.direction == role::output || !spec.when.empty() || spec.optional) continue;
      if (given(spec, outputs_too) == nullptr) missing(spec);
    }
  }

  void conditional_presence(bool outputs_too) const {
    for (const argument_spec& spec : contract_.arguments) {
      if (spec.direction == role::output && !outputs_too) continue;
      const bool present = given(spec, outputs_too) != nullptr;
      if (!exists(spec)) {
        if (present) fail(spec.name, "must be absent unless " + std::string(spec.when));
      } else if (!present && !spec.optional) {
        missing(spec);
      }
    }
  }

  [[noreturn]] void missing(const argument_spec& spec) const {
    fail(spec.name, "is missing: the argument is [" + std::string(spec.shape) + "] " +
                        dtype_list(spec.dtypes));
  }

  // Dtype, rank, no negative numbers.
  void storage_form(const argument_spec& spec, const tensor_view& v) const {
    const std::vector<dtype> allowed = dtypes_of(spec);
    const bool fits = std::any_of(allowed.begin(), allowed.end(),
                                  [&](dtype type) { return same_storage(type, v.type); });
    if (!fits) {
      fail(spec.name,
           "dtype is " + std::string(name_of(v.type)) + ", must be " + dtype_list(allowed));
    }
    if (v.at.strides.size() != v.at.shape.size()) {
      fail(spec.name, "has " + std::to_string(v.at.strides.size()) + " strides for " +
                          std::to_string(v.at.shape.size()) + " dimensions, must have as many");
    }
    const auto negative = [](std::int64_t n) { return n < 0; };
    if (std::any_of(v.at.shape.begin(), v.at.shape.end(), negative)) {
      fail(spec.name, "shape is " + numbers(v.at.shape) + ", sizes must not be negative");
    }
    if (std::any_of(v.at.strides.begin(), v.at.strides.end(), negative) || v.at.offset < 0) {
      fail(spec.name, "strides are " + numbers(v.at.strides) + " and the offset is " +
                          std::to_string(v.at.offset) + ", they must not be negative");
    }
    const std::vector<std::string_view> dimensions = list_of(spec.shape);
    if (is_flat(spec, v)) return;
    const bool open = !dimensions.empty() && dimensions.back() == any_dimensions;
    const std::size_t least = dimensions.size() - (open ? 1 : 0);
    if (open ? v.rank() < least : v.rank() != least) {
      fail(spec.name, "shape is " + numbers(v.at.shape) + ", must be [" + std::string(spec.shape) +
                          "] (" + std::string(spec.axes) + ")" +
                          (flat_allowed(spec) ? " or [" + flat_shape(spec) + "]" : ""));
    }
  }

  // A page view [blocks, block bytes] is possible where attributes alone tell record and tokens.
  bool flat_allowed(const argument_spec& spec) const {
    return spec.strides == stride_rule::pages && !spec.block_size.empty() &&
           over_attributes(spec.record) && over_attributes(spec.block_size);
  }
  bool is_flat(const argument_spec& spec, const tensor_view& v) const {
    return flat_allowed(spec) && v.rank() == 2;
  }
  static std::string flat_shape(const argument_spec& spec) {
    return std::string(list_of(spec.shape).front()) + ", " + std::string(spec.block_size) + " * " +
           std::string(spec.record);
  }

  void bind(const argument_spec& spec, const tensor_view& v) {
    const std::vector<std::string_view> dimensions = list_of(spec.shape);
    const std::size_t bound = is_flat(spec, v) ? 1 : dimensions.size();
    for (std::size_t axis = 0; axis < bound; ++axis) {
      const std::string_view dimension = dimensions[axis];
      if (dimension == any_dimensions) break;
      if (is_name(dimension) && contract_.attribute(dimension) == nullptr) {
        names_.emplace(std::string(dimension), v.dim(axis));  // the first argument binds it
      }
    }
  }

  void bind_absent() {
    for (const argument_spec& spec : contract_.arguments) {
      if (!spec.optional && spec.when.empty()) continue;
      if (spec.direction == role::output || call_.tensors.count(spec.name) != 0) continue;
      for (const std::string_view dimension : list_of(spec.shape)) {
        if (dimension != any_dimensions && is_name(dimension) &&
            contract_.attribute(dimension) == nullptr) {
          names_.emplace(std::string(dimension), 0);
        }
      }
    }
  }

  // What "..." stands for: the dimensions of the first argument that has it.
  std::vector<std::int64_t> further_dimensions() const {
    for (const argument_spec& spec : contract_.arguments) {
      const std::vector<std::string_view> dimensions = list_of(spec.shape);
      const auto found = call_.tensors.find(spec.name);
      if (dimensions.empty() || dimensions.back() != any_dimensions ||
          spec.direction == role::output || found == call_.tensors.end()) {
        continue;
      }
      const std::vector<std::int64_t>& sizes = found->second.at.shape;
      return {sizes.begin() + static_cast<std::ptrdiff_t>(dimensions.size()) - 1, sizes.end()};
    }
    return {};
  }

  void shape(const argument_spec& spec, const tensor_view& v) const {
    const std::vector<std::string_view> dimensions = list_of(spec.shape);
    const std::vector<std::string_view> axes = list_of(spec.axes);
    for (std::size_t axis = 0; axis < dimensions.size(); ++axis) {
      if (is_flat(spec, v) && axis == 1) {
        flat_page(spec, v);
        return;
      }
      const std::string_view dimension = dimensions[axis];
      if (dimension == any_dimensions) {
        const std::vector<std::int64_t> wanted = further_dimensions();
        const std::vector<std::int64_t> got(v.at.shape.begin() + static_cast<std::ptrdiff_t>(axis),
                                            v.at.shape.end());
        if (got != wanted) {
          fail(spec.name,
               "further dimensions are " + numbers(got) + ", must be " + numbers(wanted));
        }
        return;
      }
      const std::int64_t wanted = value_of(spec.name, dimension);
      if (v.dim(axis) == wanted) continue;
      const std::string which = axis < axes.size() ? " (" + std::string(axes[axis]) + ")" : "";
      const std::string rule = is_number(dimension) ? "" : std::string(dimension) + " = ";
      fail(spec.name, "dimension " + std::to_string(axis) + which + " is " +
                          std::to_string(v.dim(axis)) + ", must be " + rule +
                          std::to_string(wanted));
    }
  }

  void flat_page(const argument_spec& spec, const tensor_view& v) const {
    const std::int64_t page = page_bytes(spec, v);
    if (v.dim(1) >= page) return;
    fail(spec.name, "dimension 1 (page byte) is " + std::to_string(v.dim(1)) +
                        ", must be at least " + page_text(spec, v, page));
  }

  static std::string page_text(const argument_spec& spec, const tensor_view& v, std::int64_t page) {
    const std::string_view tokens =
        spec.block_size.empty() ? list_of(spec.shape)[1] : spec.block_size;
    return std::string(tokens) + " * (" + std::string(spec.record) + ") = " + std::to_string(page) +
           std::string(unit(v));
  }

  // Strides of a page view count elements, which are bytes but for bf16 rows.
  static std::string_view unit(const tensor_view& v) {
    return size_of(v.type) == 1 ? " bytes" : " elements";
  }

  // Bytes of one page's records, side by side.
  std::int64_t page_bytes(const argument_spec& spec, const tensor_view& v) const {
    const std::int64_t tokens =
        spec.block_size.empty() ? v.dim(1) : value_of(spec.name, spec.block_size);
    const std::int64_t record = value_of(spec.name, spec.record);
    const std::int64_t page = record < 0 || tokens < 0 ? -1 : add_product(0, tokens, record);
    if (page < 0) {
      fail(spec.name, "pages of " + std::to_string(tokens) + " tokens * " + std::to_string(record) +
                          std::string(unit(v)) + " do not fit 64 bits");
    }
    return page;
  }

  void memory(const argument_spec& spec, const tensor_view& v) const {
    const bool empty = std::find(v.at.shape.begin(), v.at.shape.end(), 0) != v.at.shape.end();
    if (!empty) {
      switch (spec.strides) {
        case stride_rule::dense:
          dense_strides(spec, v);
          break;
        case stride_rule::rows:
          row_strides(spec, v);
          break;
        case stride_rule::pages:
          page_strides(spec, v);
          break;
      }
    }
    // Elements, the offset first.
    std::int64_t reached = v.at.offset;
    for (std::size_t axis = 0; axis < v.rank() && !empty; ++axis) {
      reached = add_product(reached, v.dim(axis) - 1, v.stride(axis));
    }
    if (!empty && reached >= 0) reached = add_product(reached, 1, 1);
    if (!empty && spec.strides == stride_rule::pages) {
      // A segregated page ends behind its last scale, whatever the entry stride says.
      const std::int64_t last_page = add_product(v.at.offset, v.dim(0) - 1, v.stride(0));
      const std::int64_t end = add_product(last_page, 1, page_bytes(spec, v));
      reached = end < 0 || reached < 0 ? -1 : std::max(reached, end);
    }
    const std::int64_t size = static_cast<std::int64_t>(size_of(v.type));
    const std::int64_t bytes = reached < 0 ? -1 : add_product(0, reached, size);
    if (bytes >= 0 && static_cast<std::uint64_t>(bytes) <= v.storage_bytes) {
      if (v.storage != nullptr || v.storage_bytes == 0) return;
      fail(spec.name, "has no storage");
    }
    fail(spec.name, "shape " + numbers(v.at.shape) + " with strides " + numbers(v.at.strides) +
                        " and offset " + std::to_string(v.at.offset) + " reaches " +
                        (bytes < 0 ? "past 64 bits" : "byte " + std::to_string(bytes)) +
                        ", the storage has " + std::to_string(v.storage_bytes) + " bytes");
  }

  void dense_strides(const argument_spec& spec, const tensor_view& v) const {
    std::int64_t step = 1;
    std::vector<std::int64_t> wanted(v.rank());
    bool fits = true;
    for (std::size_t axis = v.rank(); axis-- > 0;) {
      wanted[axis] = step;
      if (v.dim(axis) > 1 && v.stride(axis) != step) fits = false;
      if (__builtin_mul_overflow(step, v.dim(axis), &step)) {
        fail(spec.name, "shape " + numbers(v.at.shape) + " has more elements than 64 bits count");
      }
    }
    if (fits) return;
    fail(spec.name, "strides are " + numbers(v.at.strides) + ", must be dense: " + numbers(wanted));
  }

  void row_strides(const argument_spec& spec, const tensor_view& v) const {
    if (v.rank() == 0) return;
    const std::size_t last = v.rank() - 1;
    if (v.dim(last) > 1 && v.stride(last) != 1) {
      fail(spec.name, "last stride is " + std::to_string(v.stride(last)) + ", must be 1");
    }
    // From the smallest stride outwards, each dimension steps over all that lies inside it.
    std::vector<std::size_t> order;
    for (std::size_t axis = 0; axis < last; ++axis) {
      if (v.dim(axis) > 1) order.push_back(axis);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return v.stride(a) < v.stride(b); });
    std::int64_t inside = v.dim(last);
    for (const std::size_t axis : order) {
      if (inside >= 0 && v.stride(axis) < inside) {
        fail(spec.name, "strides are " + numbers(v.at.strides) + ": rows overlap, stride " +
                            std::to_string(axis) + " must be at least " + std::to_string(inside));
      }
      inside = add_product(inside, v.dim(axis) - 1, v.stride(axis));
    }
  }

  // Elements: bytes, but for pages of bf16 rows.
  void page_strides(const argument_spec& spec, const tensor_view& v) const {
    const std::size_t last = v.rank() - 1;
    if (v.dim(last) > 1 && v.stride(last) != 1) {
      fail(spec.name, "last stride is " + std::to_string(v.stride(last)) + ", must be 1");
    }
    std::int64_t page = page_bytes(spec, v);
    std::string text = page_text(spec, v, page);
    if (v.rank() == 3 && v.dim(1) > 1) {
      if (v.stride(1) < v.dim(2)) {
        fail(spec.name, "entry stride is " + std::to_string(v.stride(1)) + std::string(unit(v)) +
                            ", must be at least the record's " + std::to_string(v.dim(2)));
      }
      const std::int64_t entries = add_product(v.dim(2), v.dim(1) - 1, v.stride(1));
      if (entries < 0 || entries > page) {
        page = entries;
        text = entries < 0 ? "a page that does not fit 64 bits"
                           : "the page's " + std::to_string(entries) + std::string(unit(v));
      }
    }
    if (v.rank() == 2 && v.dim(1) > page) {
      page = v.dim(1);
      text = "the page's " + std::to_string(page) + std::string(unit(v));
    }
    if (v.dim(0) > 1 && (page < 0 || v.stride(0) < page)) {
      fail(spec.name, "page stride is " + std::to_string(v.stride(0)) + std::string(unit(v)) +
                          ", must be at least " + text);
    }
  }

  const kernel_contract& contract_;
  call call_;  // with fallbacks filled in
  bindings names_;
};

}  // namespace

bindings check(const kernel_contract& contract, const call& context, bool outputs_too) {
  return checker(contract, context).run(outputs_too);
}

std::vector<output_shape> outputs_of(const kernel_contract& contract, const call& context,
                                     const bindings& names) {
  return checker(contract, context).outputs(names);
}

}  // namespace kvcts
