// kvcts list, kvcts describe KERNEL.
#include <fmt/format.h>

#include <map>
#include <set>

#include "conformance/cases/cases.h"
#include "conformance/cli/commands.h"
#include "conformance/runner/run.h"
#include "reference/contract/contract.h"

namespace kvcts {
namespace {

std::string_view text_of(role r) {
  switch (r) {
    case role::input:
      return "in";
    case role::updated:
      return "in/out";
    case role::output:
      return "out";
  }
  return "";
}

std::string_view text_of(stride_rule r) {
  switch (r) {
    case stride_rule::dense:
      return "dense";
    case stride_rule::rows:
      return "last stride 1, others free";
    case stride_rule::pages:
      return "pages, free page stride";
  }
  return "";
}

std::string_view text_of(attribute_kind k) {
  switch (k) {
    case attribute_kind::integer:
      return "integer";
    case attribute_kind::boolean:
      return "boolean";
    case attribute_kind::real:
      return "real";
    case attribute_kind::text:
      return "text";
  }
  return "";
}

}  // namespace

int list_command(const std::string& kernel, const suite_arguments& suite) {
  const level up_to = level_from_name(suite.level.value_or("acceptance"));
  if (!kernel.empty()) {
    for (const case_spec& c : cases_of(contract_of(kernel).name, up_to, suite.seed)) {
      fmt::print("{} [{}]\n", c.name, fmt::join(c.flags, ", "));
    }
    return 0;
  }
  for (const kernel_contract* c : contracts()) {
    fmt::print("{:<37} {:<14} {:>4} smoke, {:>4} acceptance, {:>4} exhaustive cases\n", c->name,
               c->family, cases_of(c->name, level::smoke, 1).size(),
               cases_of(c->name, level::acceptance, 1).size(),
               cases_of(c->name, level::exhaustive, 1).size());
  }
  return 0;
}

int describe_command(const std::string& kernel) {
  const kernel_contract& c = contract_of(kernel);
  fmt::print("{} ({})\n{}\n\narguments\n", c.name, c.family, c.summary);
  for (const argument_spec& a : c.arguments) {
    std::vector<std::string_view> types;
    for (const dtype t : a.dtypes) types.push_back(name_of(t));
    fmt::print("  {:<16} {:<7} {:<9} [{}] ({}; {}){}\n", a.name, text_of(a.direction),
               fmt::format("{}", fmt::join(types, "|")), a.shape, a.axes, text_of(a.strides),
               a.optional ? ", optional" : "");
    if (!a.when.empty()) fmt::print("  {:<16} where {}\n", "", a.when);
    fmt::print("  {:<16} {}\n", "", a.meaning);
  }
  fmt::print("attributes\n");
  for (const attribute_spec& a : c.attributes) {
    fmt::print("  {:<16} {:<7} {}", a.name, text_of(a.kind), a.meaning);
    if (!a.choices.empty()) fmt::print(" ({})", fmt::join(a.choices, ", "));
    if (a.optional) fmt::print("; optional, default {}", a.fallback);
    fmt::print("\n");
  }
  if (!c.preconditions.empty()) fmt::print("preconditions\n");
  for (const precondition& p : c.preconditions) {
    fmt::print("  {:<16} {}\n", p.argument, p.holds);
  }
  fmt::print("captured on hardware: {}\nderived from rules:   {}\n", c.captured, c.derived);
  std::map<std::string, std::size_t> by_flag;
  const std::vector<case_spec> cases = cases_of(kernel, level::acceptance, 1);
  for (const case_spec& one : cases) {
    for (const std::string& flag : one.flags) ++by_flag[flag];
  }
  fmt::print("cases at level acceptance: {}, by flag\n", cases.size());
  for (const flag_text& f : flag_table()) {
    const auto at = by_flag.find(std::string(f.flag));
    if (at != by_flag.end()) fmt::print("  {:<20} {:>4}  {}\n", f.flag, at->second, f.meaning);
  }
  return 0;
}

}  // namespace kvcts
