// The declaration of a kernel as plain data. Everything that must know a kernel's arguments reads
// this: the argument check, the command line, the vector schema, the case builders, the candidate
// interface.
//
// Shapes, conditions and preconditions are short expressions over the call's own names, so that the
// text which `kvcts describe` prints is the text which the check evaluates:
//   - a name that first appears as a whole dimension of an argument is bound to its size ("T",
//   "H");
//   - an integer or boolean attribute is a name; a text attribute compares with 'quoted' text;
//   - + - * / % (floor), ( ), min(a,b), max(a,b), ceil(a,b) = a rounded up to a multiple of b;
//   - == != < <= > >= && || !; has(argument) tells whether an optional argument is present;
//   - a last dimension "..." stands for any further dimensions, the same ones in every argument
//     that has it;
//   - names that only an absent optional argument would bind are 0.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {

enum class role : std::uint8_t { input, updated, output };
enum class attribute_kind : std::uint8_t { integer, boolean, real, text };
// What strides an argument may have. `rows`: the last stride is 1, the others are free (each row's
// elements stay apart from the next row's). `pages`: a page view, see paged_spec.
enum class stride_rule : std::uint8_t { dense, rows, pages };

struct argument_spec {
  std::string_view name;
  role direction = role::input;
  std::vector<dtype> dtypes;  // any of these
  std::string_view shape;     // dimensions separated by commas: "T, H, 128"
  std::string_view axes;      // what each dimension counts, for messages: "token, head, dim"
  stride_rule strides = stride_rule::dense;
  std::string_view meaning;
  bool optional = false;
  std::string_view when = {};        // an output (or updated argument) exists only where this holds
  std::string_view record = {};      // pages: expression of the record's elements a token
  std::string_view block_size = {};  // pages: expression of the tokens a page; empty: dimension 1
  // pages: the record's name in reference/layout/paged.h; empty: told by its bytes.
  std::string_view record_name = {};
  // Where the dtype follows from attributes: dtypes[i] is the one where the expression
  // dtype_when[i] holds. Empty: any of the dtypes.
  std::vector<std::string_view> dtype_when = {};
  std::string_view dtype_like = {};  // the argument whose dtype this one has; empty: its own
};

struct attribute_spec {
  std::string_view name;
  attribute_kind kind = attribute_kind::integer;
  std::string_view meaning;
  bool optional = false;
  std::string_view fallback = {};              // printed and used where it is absent
  std::vector<std::string_view> choices = {};  // text: the allowed values
};

// `holds` must be true; otherwise the error is "<kernel>: <argument>: <message>" with {name} of the
// message replaced by the values of names and attributes.
struct precondition {
  std::string_view argument;
  std::string_view holds;
  std::string_view message;
};

// A sum whose order the bytes depend on: reference/numerics/reduction_tree.h.
struct reduction_spec {
  std::string_view name;    // what is summed: "LayerNorm of k"
  std::string_view width;   // expression of the elements of a row
  std::string_view padded;  // expression whose next power of two the row is padded to
  std::string_view warps;   // expression of the warps of the launch
  int element_bytes;        // of the row in memory
};

// What check_indices asks of an argument, in words.
struct content_rule {
  std::string_view argument;
  std::string_view words;
};

struct kernel_contract {
  std::string_view name;
  std::string_view family;   // "Kimi K3.1" or "DeepSeek V4.1"
  std::string_view summary;  // one sentence
  std::vector<argument_spec> arguments;
  std::vector<attribute_spec> attributes;
  std::vector<precondition> preconditions;
  std::string_view captured;  // what of it real hardware wrote
  std::string_view derived;   // what of it follows from rules only
  // Looks at contents: slots past the cache, positions past the table. Null where nothing can be
  // out of range. Runs after shapes and preconditions hold. Throws input_error.
  void (*check_indices)(const call&) = nullptr;
  std::vector<content_rule> contents = {};
  std::vector<reduction_spec> reductions = {};

  const argument_spec* argument(std::string_view argument_name) const;
  const attribute_spec* attribute(std::string_view attribute_name) const;
  // Throws std::logic_error where there is none of that name.
  const reduction_spec& reduction(std::string_view reduction_name) const;
};

using bindings = std::map<std::string, std::int64_t, std::less<>>;

// Every kernel that KVCTS knows, in the order of docs/kernels.md.
const std::vector<const kernel_contract*>& contracts();
// Throws input_error that lists the known names.
const kernel_contract& contract_of(std::string_view kernel);

// Evaluates one expression of the language above. Throws std::logic_error on a malformed one, and
// input_error where the values divide by zero or leave 64 bits.
std::int64_t evaluate(std::string_view expression, const bindings& names, const call& context);
// The names that an expression reads, has() apart, in order, each once.
std::vector<std::string> names_in(std::string_view expression);
// Splits at the commas outside parentheses: the dimensions of a shape, the names of its axes.
std::vector<std::string_view> list_of(std::string_view text);

// What Rules::tree takes, of a sum, for the names that its expressions read.
struct row_reduction {
  std::int64_t width, padded;
  int element_bytes, warps;
};
row_reduction row_of(const reduction_spec& spec, const bindings& names);

// An integer attribute of a checked call, or the contract's fallback.
std::int64_t integer_of(const kernel_contract& contract, const call& context,
                        std::string_view attribute);

// Checks inputs, updated arguments and, where `outputs_too`, outputs: presence, dtype, rank, shape,
// strides, storage, attributes, preconditions, indices. Gives the bound names, integer and boolean
// attributes (with their fallbacks) among them. Throws input_error.
bindings check(const kernel_contract& contract, const call& context, bool outputs_too);

// Shape of every output of a call whose inputs have been checked.
struct output_shape {
  const argument_spec* spec;
  std::vector<std::int64_t> shape;
  dtype type;
};
std::vector<output_shape> outputs_of(const kernel_contract& contract, const call& context,
                                     const bindings& names);

}  // namespace kvcts
