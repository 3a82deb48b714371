// kvcts describe KERNEL --abi.
#include "conformance/cli/describe_abi.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/candidate/library.h"

namespace kvcts {
namespace {

std::string_view name_of(role r) {
  switch (r) {
    case role::input:
      return "KVCTS_INPUT";
    case role::updated:
      return "KVCTS_UPDATED";
    case role::output:
      return "KVCTS_OUTPUT";
  }
  return "";
}

std::string_view strides_of(stride_rule r) {
  switch (r) {
    case stride_rule::dense:
      return "row-major without gaps";
    case stride_rule::rows:
      return "the last is 1; the others are free";
    case stride_rule::pages:
      return "bytes of a page stand together; pages may stand further apart";
  }
  return "";
}

std::string presence_of(const argument_spec& a) {
  std::string text;
  if (a.optional) text = "may be absent";
  if (!a.when.empty()) text += fmt::format("{}is there where {}", text.empty() ? "" : "; ", a.when);
  return text;
}

std::string types_of(const argument_spec& a) {
  std::string text;
  for (std::size_t i = 0; i < a.dtypes.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " or ", interface_name(a.dtypes[i]));
    if (i < a.dtype_when.size()) text += fmt::format(" (where {})", a.dtype_when[i]);
  }
  if (!a.dtype_like.empty()) text += fmt::format(", as {}", a.dtype_like);
  return text;
}

std::string kind_of(attribute_kind k) {
  switch (k) {
    case attribute_kind::integer:
      return "KVCTS_INTEGER";
    case attribute_kind::boolean:
      return "KVCTS_INTEGER, 0 or 1";
    case attribute_kind::real:
      return "KVCTS_REAL";
    case attribute_kind::text:
      return "KVCTS_TEXT";
  }
  return "";
}

}  // namespace

std::string interface_of(const kernel_contract& contract) {
  std::string text = fmt::format(
      "kvcts_call of {} (ABI version {})\n  kernel   \"{}\"\n  profile  \"nvidia\" or \"ieee\"\n\n"
      "arguments, in this order\n",
      contract.name, KVCTS_ABI_VERSION, contract.name);
  const auto line = [&text](std::string_view what, std::string_view value) {
    if (!value.empty()) text += fmt::format("    {:<9}{}\n", what, value);
  };
  for (const argument_spec& a : contract.arguments) {
    text += fmt::format("  \"{}\"  {}\n", a.name, name_of(a.direction));
    line("type", types_of(a));
    line("shape", fmt::format("[{}] ({})", a.shape, a.axes));
    const bool flat = std::any_of(contract.attributes.begin(), contract.attributes.end(),
                                  [&](const attribute_spec& b) { return b.name == a.record; });
    if (flat && !a.block_size.empty()) {
      line("", fmt::format("or [{}, {} * {}]: the same pages, given as rows of bytes",
                           a.shape.substr(0, a.shape.find(',')), a.block_size, a.record));
    }
    line("strides", strides_of(a.strides));
    line("", presence_of(a));
    line("holds", a.meaning);
  }
  text += "\nattributes\n";
  for (const attribute_spec& a : contract.attributes) {
    text += fmt::format("  \"{}\"  {}\n", a.name, kind_of(a.kind));
    if (!a.choices.empty()) line("values", fmt::format("{}", fmt::join(a.choices, ", ")));
    if (a.optional) line("", fmt::format("may be absent: then {}", a.fallback));
    line("holds", a.meaning);
  }
  if (contract.attributes.empty()) text += "  none\n";
  if (!contract.preconditions.empty()) text += "\nevery call holds to\n";
  for (const precondition& p : contract.preconditions) text += fmt::format("  {}\n", p.holds);
  return text;
}

}  // namespace kvcts
