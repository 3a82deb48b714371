// kvcts list, kvcts describe KERNEL.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "conformance/cases/cases.h"
#include "conformance/cli/commands.h"
#include "conformance/cli/describe_abi.h"
#include "conformance/runner/run.h"
#include "reference/contract/contract.h"
#include "reference/numerics/reduction_tree.h"
#include "vectors/version.h"

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

// Values for the names in a reduction's expressions: the model's shapes, and every number of warps.
const std::map<std::string, std::vector<std::int64_t>, std::less<>> example_values = {
    {"D", {128}}, {"Q", {1536}}, {"K", {512}}, {"num_warps", {1, 2, 4}}};

// Every combination of the example values of `names`.
std::vector<bindings> examples_of(const std::set<std::string>& names) {
  std::vector<bindings> examples = {{}};
  for (const std::string& name : names) {
    std::vector<bindings> longer;
    for (const bindings& one : examples) {
      for (const std::int64_t value : example_values.at(name)) {
        longer.push_back(one);
        longer.back().emplace(name, value);
      }
    }
    examples = std::move(longer);
  }
  return examples;
}

void print_tree(const reduction_tree& tree) {
  const std::int64_t lanes = tree.warps * tree.lanes;
  const std::int64_t live = tree.live_warps() * tree.live_lanes();
  const std::int64_t chunk = lanes * tree.per;
  fmt::print("      block {}, {} lanes{}, {} consecutive element{} a lane, {} chunk{}\n",
             tree.padded, lanes, live < lanes ? fmt::format(" ({} with elements)", live) : "",
             tree.per, tree.per == 1 ? "" : "s", (tree.padded + chunk - 1) / chunk,
             tree.padded > chunk ? fmt::format("s of {}", chunk) : "");
  const std::string text = tree.describe();  // parts; the first one is the line above
  for (std::size_t at = text.find("; "); at != std::string::npos;) {
    const std::size_t next = text.find("; ", at + 2);
    fmt::print("      {}\n", text.substr(at + 2, next - at - 2));
    at = next;
  }
}

void print_reduction(const reduction_spec& spec) {
  fmt::print("  {}: row of {} elements of {} bytes, block next power of two of {}, warps {}\n",
             spec.name, spec.width, spec.element_bytes, spec.padded, spec.warps);
  std::set<std::string> names;
  for (const std::string_view expression : {spec.width, spec.padded, spec.warps}) {
    const std::vector<std::string> read = names_in(expression);
    names.insert(read.begin(), read.end());
  }
  for (const bindings& example : examples_of(names)) {
    std::vector<std::string> values;
    for (const auto& [name, value] : example) values.push_back(fmt::format("{} = {}", name, value));
    fmt::print("    {}\n", values.empty() ? "always" : fmt::format("{}", fmt::join(values, ", ")));
    const row_reduction row = row_of(spec, example);
    print_tree(tree_of(row.padded, row.element_bytes, row.warps));
  }
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

int describe_command(const std::string& kernel, bool interface) {
  const kernel_contract& c = contract_of(kernel);
  if (interface) {
    fmt::print("{}", interface_of(c));
    return 0;
  }
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
  if (!c.contents.empty()) fmt::print("contents\n");
  for (const content_rule& r : c.contents) fmt::print("  {:<16} {}\n", r.argument, r.words);
  if (!c.reductions.empty()) fmt::print("sums, in the order that the bytes show\n");
  for (const reduction_spec& spec : c.reductions) print_reduction(spec);
  fmt::print("captured on hardware: {}\nderived from rules:   {}\n", c.captured, c.derived);
  std::map<std::string, std::size_t> by_flag;
  const std::vector<case_spec> cases = cases_of(kernel, level::acceptance, 1);
  for (const case_spec& one : cases) {
    for (const std::string& flag : one.flags) ++by_flag[flag];
  }
  fmt::print("cases at level acceptance: {} (suite version {}), by flag\n", cases.size(),
             suite_version);
  for (const flag_text& f : flag_table()) {
    const auto at = by_flag.find(std::string(f.flag));
    if (at != by_flag.end()) fmt::print("  {:<20} {:>4}  {}\n", f.flag, at->second, f.meaning);
  }
  return 0;
}

}  // namespace kvcts
