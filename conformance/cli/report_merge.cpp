// kvcts report merge.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/replaced_file.h"
#include "conformance/cli/commands.h"
#include "conformance/cli/fuzz_report.h"
#include "conformance/cli/report_folder.h"
#include "conformance/cli/text.h"
#include "conformance/runner/merge.h"
#include "conformance/runner/shard.h"
#include "reference/layout/tensor.h"
#include "reports/reports.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

std::string file_of(const std::string& report) {
  return fs::is_directory(report) ? (fs::path(report) / "report.json").string() : report;
}

// Null where the file is no object: the reader of reports says more about it.
json object_in(const std::string& path) {
  std::ifstream in(path);
  json j = json::parse(in, nullptr, false);
  return j.is_object() ? j : json();
}

bool is_adequacy(const json& j) {
  return j.is_object() && j.value("schema", json()) == "kvcts-adequacy";
}

// --- Adequacy -----------------------------------------------------------------------------------

struct trials_file {
  std::string path;
  json content;
  json shard() const { return content.at("shard"); }
  int index() const { return shard().at("index"); }
  int of() const { return shard().at("of"); }
};

void check_alike(const trials_file& a, const trials_file& b) {
  for (const char* what : {"of", "trials_of_all", "plan_digest", "program_digest"}) {
    if (a.shard().at(what) == b.shard().at(what)) continue;
    throw input_error(fmt::format("cannot merge: {} and {} differ in '{}': merge shards of one run",
                                  a.path, b.path, what));
  }
  if (a.content.at("not_tried") != b.content.at("not_tried")) {
    throw input_error("cannot merge: " + a.path + " and " + b.path + " differ in 'not_tried'");
  }
}

json joined_trials(std::vector<trials_file> files) {
  std::sort(files.begin(), files.end(),
            [](const trials_file& a, const trials_file& b) { return a.index() < b.index(); });
  std::vector<named_shard> there;
  std::vector<json> results;
  for (const trials_file& f : files) {
    check_alike(files.front(), f);
    there.push_back({f.index(), f.path});
    for (const json& one : f.content.at("results")) results.push_back(one);
  }
  check_shards(there, files.front().of());
  const auto position = [](const json& j) { return j.at("position").get<std::size_t>(); };
  std::sort(results.begin(), results.end(),
            [&](const json& a, const json& b) { return position(a) < position(b); });
  const auto all = files.front().shard().at("trials_of_all").get<std::size_t>();
  bool complete = results.size() == all;
  for (std::size_t i = 0; complete && i < all; ++i) complete = position(results[i]) == i;
  if (!complete) throw input_error("the shards do not hold each trial once: run them anew");

  json out = files.front().content;
  out.erase("shard");
  std::set<std::string> faults, pairs;
  std::size_t survivors = 0;
  out["results"] = json::array();
  for (json& one : results) {
    one.erase("position");
    const auto fault = one.at("fault").get<std::string>();
    faults.insert(fault);
    pairs.insert(one.at("kernel").get<std::string>() + "/" + fault);
    survivors += !one.at("caught").get<bool>();
    out["results"].push_back(std::move(one));
  }
  out["faults"] = faults.size();
  out["pairs"] = pairs.size();
  out["trials"] = all;
  out["survivors"] = survivors;
  return out;
}

int merge_adequacy(const std::vector<std::string>& paths, const std::string& folder) {
  std::vector<trials_file> files;
  for (const std::string& path : paths) {
    json content = object_in(path);
    if (!is_adequacy(content)) {
      throw input_error(path + " is no result of kvcts adequacy --json, as the first is");
    }
    if (!content.contains("shard")) {
      throw input_error(path + " is a whole run, no shard: there is nothing to merge");
    }
    files.push_back({path, std::move(content)});
  }
  json out;
  try {
    out = joined_trials(std::move(files));
  } catch (const json::exception& error) {
    throw input_error(std::string("a result of kvcts adequacy is damaged: ") + error.what());
  }
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const std::string path = (fs::path(folder) / "adequacy.json").string();
  const std::string why = replace_file(path, out.dump(1) + "\n");
  if (!why.empty()) {
    throw input_error(path + " cannot be written (" + why + "): choose another folder for -o");
  }
  for (const json& one : out["results"]) {
    if (one["caught"].get<bool>()) continue;
    fmt::print("SURVIVES {} in {} ({})\n", one["fault"].get<std::string>(),
               one["kernel"].get<std::string>(), one["profile"].get<std::string>());
  }
  fmt::print("adequacy of {} shards: {} faults, {} pairs with a kernel, {} trials, {} survive\n",
             paths.size(), out["faults"].get<std::size_t>(), out["pairs"].get<std::size_t>(),
             out["trials"].get<std::size_t>(), out["survivors"].get<std::size_t>());
  return out["survivors"] == 0 ? 0 : 1;
}

}  // namespace

int merge_command(const merge_arguments& arguments) {
  std::vector<std::string> paths;
  for (const std::string& report : arguments.reports) paths.push_back(file_of(report));
  if (is_adequacy(object_in(paths.front()))) return merge_adequacy(paths, arguments.output);
  if (is_fuzz_file(paths.front())) return merge_fuzz(paths, arguments.output);

  const report_folder folder(arguments.output);
  std::vector<shard_report> reports;
  for (const std::string& path : paths) reports.push_back({path, read_report(path)});
  const run_result merged = merge_shards(reports);
  fmt::print("merged: {} shards\n", reports.size());
  print_result(merged);
  folder.write(merged);
  return merged.exit_status(arguments.require_full);
}

}  // namespace kvcts
