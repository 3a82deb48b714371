// Which cases a run holds.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "common/patterns.h"
#include "conformance/runner/run.h"
#include "conformance/runner/vector_check.h"
#include "reference/contract/contract.h"
#include "reference/kernels/kernels.h"
#include "vectors/file.h"

namespace kvcts {

std::string_view name_of(level l) {
  switch (l) {
    case level::smoke:
      return "smoke";
    case level::acceptance:
      return "acceptance";
    case level::exhaustive:
      return "exhaustive";
  }
  return "";
}

level level_from_name(std::string_view name) {
  for (const level l : {level::smoke, level::acceptance, level::exhaustive}) {
    if (name == name_of(l)) return l;
  }
  throw input_error(
      fmt::format("unknown level '{}': the levels are smoke, acceptance, exhaustive", name));
}

profile profile_from_name(std::string_view name) {
  for (const profile p : {profile::nvidia, profile::ieee}) {
    if (name == name_of(p)) return p;
  }
  throw input_error(fmt::format("unknown profile '{}': the profiles are nvidia, ieee", name));
}

std::string implemented_kernels(std::string_view separator) {
  std::vector<std::string_view> names;
  for (const kernel_contract* c : contracts()) {
    if (reference_of(c->name) != nullptr) names.push_back(c->name);
  }
  return fmt::format("{}", fmt::join(names, separator));
}

name_patterns::name_patterns(std::string_view patterns) {
  while (!patterns.empty()) {
    const std::size_t comma = std::min(patterns.find(','), patterns.size());
    patterns_.emplace_back(patterns.substr(0, comma));
    patterns.remove_prefix(std::min(comma + 1, patterns.size()));
  }
}

bool name_patterns::matches(std::string_view name) const {
  const std::string text(name);
  return patterns_.empty() ||
         std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, text); });
}

std::optional<std::string> name_patterns::without_match(
    const std::vector<std::string_view>& names) const {
  for (const std::string& pattern : patterns_) {
    const bool any = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return matches_pattern(pattern, std::string(name));
    });
    if (!any) return pattern;
  }
  return std::nullopt;
}

kernel_filter::kernel_filter(std::string_view patterns) : text_(patterns), patterns_(patterns) {
  std::vector<std::string_view> names;
  for (const kernel_contract* c : contracts()) names.push_back(c->name);
  const std::optional<std::string> unknown = patterns_.without_match(names);
  if (!unknown) return;
  throw input_error(
      fmt::format("unknown kernel '{}': the kernels are {}", *unknown, implemented_kernels(", ")));
}

std::vector<planned_case> plan_built_in(const kernel_filter& kernels, level up_to,
                                        std::uint64_t seed, profile p) {
  std::vector<planned_case> plan;
  for (const kernel_contract* contract : contracts()) {
    if (!kernels.matches(contract->name)) continue;
    for (case_spec& spec : cases_of(contract->name, up_to, seed)) {
      planned_case planned;
      planned.kernel = spec.kernel;
      planned.name = spec.name;
      planned.flags = spec.flags;
      planned.source = "built-in";
      planned.provenance = "derived";
      planned.rules = p;
      planned.replay = fmt::format("--kernels {} --case {} --level {} --profile {} --seed {}",
                                   spec.kernel, spec.name, name_of(up_to), name_of(p), seed);
      planned.load = std::move(spec.build);
      plan.push_back(std::move(planned));
    }
  }
  return plan;
}

std::vector<planned_case> plan_file(const std::string& path, const kernel_filter& kernels) {
  const auto file = std::make_shared<const vector_file>(path);
  const profile p = profile_from_name(file->info().profile);
  std::set<std::string> unknown;
  std::vector<planned_case> plan;
  for (const vector_file::entry& entry : file->cases()) {
    if (!kernels.matches(entry.kernel)) continue;
    if (reference_of(entry.kernel) == nullptr) {
      unknown.insert(entry.kernel);
      continue;
    }
    planned_case planned;
    planned.kernel = entry.kernel;
    planned.name = entry.name;
    planned.source = path;
    planned.provenance = provenance_of(file->info());
    planned.rules = p;
    planned.replay =
        fmt::format("--vectors '{}' --kernels {} --case '{}'", path, entry.kernel, entry.name);
    planned.load = [file, entry] { return file->read(entry); };
    plan.push_back(std::move(planned));
  }
  if (!unknown.empty()) {
    throw input_error(fmt::format(
        "{} holds cases of kernels that are not implemented in this version ({}): choose others "
        "with --kernels",
        path, fmt::join(unknown, ", ")));
  }
  return plan;
}

}  // namespace kvcts
