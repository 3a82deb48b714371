#include "conformance/runner/shard.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

bool is_set(const char* value) { return value != nullptr && *value != '\0'; }

std::int64_t variable_number(const char* name, const environment_lookup& variable) {
  const char* value = variable(name);
  const std::optional<std::int64_t> number = number_in(value == nullptr ? "" : value);
  if (!number) {
    throw input_error(std::string(name) + " is '" + (value == nullptr ? "" : value) +
                      "', not a number: set it, or give --shard I/N");
  }
  return *number;
}

shard checked(std::int64_t index, std::int64_t count, const std::string& from) {
  if (count < 1 || count > most_shards || index < 1 || index > count) {
    throw input_error(from + ": no shard " + std::to_string(index) + " of " +
                      std::to_string(count) +
                      ": I/N has 1 <= I <= N <= " + std::to_string(most_shards));
  }
  return {static_cast<int>(index), static_cast<int>(count)};
}

struct from_environment {
  shard part;
  const char* variable;
};

// 0-based, as GoogleTest has it.
from_environment gtest_shard(const environment_lookup& variable) {
  const std::int64_t count = variable_number("GTEST_TOTAL_SHARDS", variable);
  const std::int64_t index = variable_number("GTEST_SHARD_INDEX", variable);
  if (index < 0 || index >= count) {
    throw input_error("GTEST_SHARD_INDEX is " + std::to_string(index) +
                      ": it runs from 0 to GTEST_TOTAL_SHARDS - 1 (GTEST_TOTAL_SHARDS is " +
                      std::to_string(count) + ")");
  }
  return {checked(index + 1, count, "GTEST_TOTAL_SHARDS"), "GTEST_TOTAL_SHARDS"};
}

// An array may begin anywhere and have a step; COUNT is how many tasks there are.
from_environment slurm_shard(const environment_lookup& variable) {
  const auto number = [&](const char* name) { return variable_number(name, variable); };
  const std::int64_t id = number("SLURM_ARRAY_TASK_ID");
  const std::int64_t count = number("SLURM_ARRAY_TASK_COUNT");
  const std::int64_t first = number("SLURM_ARRAY_TASK_MIN");
  const std::int64_t step =
      is_set(variable("SLURM_ARRAY_TASK_STEP")) ? number("SLURM_ARRAY_TASK_STEP") : 1;
  const std::int64_t last = is_set(variable("SLURM_ARRAY_TASK_MAX"))
                                ? number("SLURM_ARRAY_TASK_MAX")
                                : first + (count - 1) * step;
  if (step < 1 || last - first != (count - 1) * step || (id - first) % step != 0) {
    throw input_error("SLURM_ARRAY_TASK_ID " + std::to_string(id) +
                      ": the array is no plain range (FIRST-LAST or FIRST-LAST:STEP): give "
                      "--shard I/N");
  }
  return {checked((id - first) / step + 1, count, "SLURM_ARRAY_TASK_ID"), "SLURM_ARRAY_TASK_ID"};
}

std::optional<from_environment> shard_in(const environment_lookup& variable) {
  if (is_set(variable("GTEST_TOTAL_SHARDS"))) return gtest_shard(variable);
  if (is_set(variable("SLURM_ARRAY_TASK_ID"))) return slurm_shard(variable);
  return {};
}

}  // namespace

std::string text_of(const shard& s) {
  return std::to_string(s.index) + "/" + std::to_string(s.count);
}

shard parse_shard(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::optional<std::int64_t> index = number_in(text.substr(0, slash));
  const std::optional<std::int64_t> count =
      number_in(text.substr(std::min(slash + 1, text.size())));
  const std::string from = "--shard '" + std::string(text) + "'";
  if (!index || !count) throw input_error(from + ": write I/N, such as 2/4");
  return checked(*index, *count, from);
}

shard_choice choose_shard(const std::string& option, const environment_lookup& variable) {
  if (option.empty()) {
    const std::optional<from_environment> found = shard_in(variable);
    if (!found) return {};
    return {found->part, "shard " + text_of(found->part) + ", as " + found->variable + " says"};
  }
  shard_choice choice{parse_shard(option), {}};
  for (const char* name : {"GTEST_TOTAL_SHARDS", "SLURM_ARRAY_TASK_ID"}) {
    if (!is_set(variable(name)) || !choice.notice.empty()) continue;
    choice.notice =
        "shard " + text_of(choice.part) + ", as --shard says; " + name + " is not followed";
  }
  return choice;
}

shard shard_of_process(const std::string& option) {
  const shard_choice choice =
      choose_shard(option, [](const char* name) -> const char* { return std::getenv(name); });
  if (!choice.notice.empty()) std::fprintf(stderr, "kvcts: %s\n", choice.notice.c_str());
  return choice.part;
}

std::vector<int> partition(const std::vector<std::uint64_t>& costs, int shards) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  using load = std::pair<std::uint64_t, int>;  // so far, shard
  std::priority_queue<load, std::vector<load>, std::greater<>> loads;
  for (int s = 1; s <= shards; ++s) loads.emplace(0, s);
  std::vector<int> found(costs.size(), 1);
  for (const std::size_t item : order) {
    const auto [so_far, s] = loads.top();
    loads.pop();
    found[item] = s;
    loads.emplace(so_far + std::max<std::uint64_t>(costs[item], 1), s);
  }
  return found;
}

std::vector<std::size_t> items_of(const shard& part, const std::vector<std::uint64_t>& costs) {
  const std::vector<int> where = partition(costs, part.count);
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < where.size(); ++i) {
    if (where[i] == part.index) items.push_back(i);
  }
  return items;
}

void check_shards(const std::vector<named_shard>& there, int count) {
  std::map<int, const std::string*> known;
  for (const named_shard& s : there) {
    const auto [at, is_new] = known.emplace(s.index, &s.path);
    if (is_new) continue;
    throw input_error("shard " + text_of(shard{s.index, count}) +
                      " is there twice: " + *at->second + " and " + s.path + ": name one of them");
  }
  std::string missing;
  for (int i = 1; i <= count; ++i) {
    if (known.count(i) == 0) missing += (missing.empty() ? "" : ", ") + text_of(shard{i, count});
  }
  if (missing.empty()) return;
  throw input_error("missing shards: " + missing + ": run them, and name all " +
                    std::to_string(count) + " reports");
}

}  // namespace kvcts
