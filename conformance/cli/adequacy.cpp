// kvcts adequacy.
#include "conformance/faults/adequacy.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/cli/commands.h"
#include "conformance/cli/text.h"
#include "conformance/runner/costs.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using json = nlohmann::ordered_json;

std::set<std::string> kernels_in(const adequacy& found) {
  std::set<std::string> kernels;
  for (const fault_trial& t : found.trials) kernels.insert(t.kernel);
  return kernels;
}

// A row a fault, a column a kernel: x caught, S survives, . does not concern the kernel.
void print_matrix(const adequacy& found) {
  const std::set<std::string> kernels = kernels_in(found);
  char letter = 'a';
  for (const std::string& kernel : kernels) fmt::print("  {}  {}\n", letter++, kernel);
  fmt::print("\n{:<34}", "x caught, S survives");
  for (std::size_t i = 0; i < kernels.size(); ++i) fmt::print(" {}", static_cast<char>('a' + i));
  fmt::print("\n");
  for (const fault& f : all_faults()) {
    std::map<std::string, char> row;
    for (const fault_trial& t : found.trials) {
      if (t.what != &f) continue;
      char& mark = row.emplace(t.kernel, 'x').first->second;
      if (t.catches.empty()) mark = 'S';
    }
    if (row.empty()) continue;
    fmt::print("{:<34}", f.name);
    for (const std::string& kernel : kernels) {
      const auto at = row.find(kernel);
      fmt::print(" {}", at == row.end() ? '.' : at->second);
    }
    fmt::print("\n");
  }
  fmt::print("\n");
}

// How many trials a flag's cases end (the first that catches, or each).
void print_flags(const adequacy& found) {
  std::map<std::string, std::size_t> ended;
  for (const fault_trial& t : found.trials) {
    std::set<std::string> flags;
    for (const std::size_t c : t.catches) {
      flags.insert(found.cases[c].flags.begin(), found.cases[c].flags.end());
    }
    for (const std::string& flag : flags) ++ended[flag];
  }
  std::string line("caught by cases with the flag:");
  for (const auto& [flag, n] : ended) {
    const std::string one = fmt::format(" {} {},", flag, n);
    if (line.size() + one.size() > 110) {
      fmt::print("{}\n", line);
      line.assign(1, ' ');
    }
    line += one;
  }
  if (!line.empty() && line.back() == ',') line.pop_back();
  fmt::print("{}\n", line);
}

// As conformance/cases/smoke.inc has it. Of fused_layout all small cases stay: the tests of
// candidates from outside play on them.
void print_reduced(const adequacy& found) {
  for (const alike_trials& two : alike(found)) {
    fmt::print("ALIKE {} and {} in {} ({}): no case tells them apart\n", two.a->what->name,
               two.b->what->name, two.a->kernel, name_of(two.a->rules));
  }
  auto chosen = reduced(found);
  for (const adequacy_case& c : found.cases) {
    if (c.kernel == "fused_layout") chosen.emplace(c.kernel, c.name);
  }
  fmt::print("{} cases still catch all, tell all that differ apart, and have one of each flag:\n",
             chosen.size());
  for (const auto& [kernel, name] : chosen) fmt::print("{{\"{}\", \"{}\"}},\n", kernel, name);
}

void write_json(const std::string& path, const adequacy& found, const shard& part) {
  json out;
  out["schema"] = "kvcts-adequacy";
  out["schema_version"] = 1;
  if (!part.is_whole()) {
    out["shard"] = {{"index", part.index},
                    {"of", part.count},
                    {"trials_of_all", found.trials_of_all},
                    {"plan_digest", found.plan_digest},
                    {"program_digest", program_digest()}};
  }
  out["faults"] = found.faults();
  out["pairs"] = found.pairs();
  out["trials"] = found.trials.size();
  out["survivors"] = found.survivors();
  out["not_tried"] = found.not_tried;
  out["results"] = json::array();
  for (const fault_trial& t : found.trials) {
    json one;
    if (!part.is_whole()) one["position"] = t.position;
    one["kernel"] = t.kernel;
    one["fault"] = t.what->name;
    one["profile"] = name_of(t.rules);
    one["caught"] = !t.catches.empty();
    one["cases_tried"] = t.tried;
    one["by"] = json::array();
    for (const std::size_t c : t.catches) {
      one["by"].push_back({{"case", found.cases[c].name}, {"flags", found.cases[c].flags}});
    }
    out["results"].push_back(one);
  }
  std::ofstream file(path);
  file << out.dump(1) << "\n";
  if (!file) throw input_error(path + " cannot be written: choose another file for --json");
}

}  // namespace

int adequacy_command(const adequacy_arguments& arguments) {
  if (arguments.catalogue) {
    fmt::print("{}", fault_table());
    return 0;
  }
  const shard part = shard_of_process(arguments.shard);
  if (arguments.reduce && !part.is_whole()) {
    throw input_error("--reduce needs every trial, not shard " + text_of(part) +
                      ": leave one of the two out");
  }
  if (!arguments.vectors.empty()) probe_vectors(arguments.vectors);
  adequacy_options options;
  options.vectors = arguments.vectors;
  options.up_to = level_from_name(arguments.level);
  options.kernels = arguments.kernels;
  options.without_flag = arguments.without_flag;
  options.every_case = arguments.reduce;
  options.part = part;
  options.candidates = arguments.reduce && options.up_to == level::smoke;
  options.threads = arguments.threads;
  options.progress = progress_on_terminal();
  const adequacy found = try_faults(options);
  if (!arguments.json.empty()) write_json(arguments.json, found, part);
  print_matrix(found);
  for (const fault_trial& t : found.trials) {
    if (!t.catches.empty()) continue;
    fmt::print("SURVIVES {} in {} ({}), {} cases tried: {}\n", t.what->name, t.kernel,
               name_of(t.rules), t.tried, t.what->text);
  }
  if (!found.not_tried.empty()) {
    fmt::print("not tried: {} pairs (a file of one profile; nothing past 2 GiB in a file)\n",
               found.not_tried.size());
  }
  print_flags(found);
  if (arguments.reduce) print_reduced(found);
  fmt::print("adequacy: {} faults, {} pairs with a kernel, {} trials, {} survive\n", found.faults(),
             found.pairs(), found.trials.size(), found.survivors());
  return found.survivors() == 0 ? 0 : 1;
}

}  // namespace kvcts
