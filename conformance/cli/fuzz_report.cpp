#include "conformance/cli/fuzz_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/printable.h"
#include "common/replaced_file.h"
#include "conformance/runner/costs.h"
#include "conformance/runner/run.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr std::string_view schema = "kvcts-fuzz";

// Null where the file is no object.
json object_in(const std::string& path) {
  std::ifstream in(path);
  json j = json::parse(in, nullptr, false);
  return j.is_object() ? j : json();
}

void refuse_unwritten(const std::string& path, const std::string& why, const char* option) {
  if (why.empty()) return;
  throw input_error(
      fmt::format("{}: cannot be written ({}), choose another {}", path, why, option));
}

void write_json(const std::string& path, const json& out, const char* option) {
  refuse_unwritten(path, replace_file(path, out.dump(1) + "\n"), option);
}

json failure_of(const fuzz_failure& f) {
  const char* what = f.result.what == outcome::crashed     ? "crashed"
                     : f.result.what == outcome::timed_out ? "timed_out"
                                                           : "failed";
  return {{"kernel", f.kernel},     {"profile", name_of(f.rules)},
          {"case", f.number},       {"outcome", what},
          {"property", f.property}, {"bytes_different", f.result.bytes_different},
          {"file", f.file}};
}

// What all shards say alike, in the order in which a difference is told.
constexpr const char* in_common[] = {"candidate", "seed",    "cases_of_all", "seconds_each",
                                     "profiles",  "kernels", "not_claimed"};

std::uint64_t number_in(const json& j, const char* name) { return j.at(name).get<std::uint64_t>(); }

// Rows of a kernel in a profile, added up. Where a shard has a failure, only its cases count.
json joined_rows(const std::vector<json>& shards, const json& failures) {
  json rows = shards.front().at("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json& to = rows[i];
    const bool failed = std::any_of(failures.begin(), failures.end(), [&](const json& f) {
      return f.at("kernel") == to.at("kernel") && f.at("profile") == to.at("profile");
    });
    std::uint64_t cases = 0, relations = 0, bytes = 0;
    double seconds = 0;
    std::string digest(64, '0');
    for (const json& s : shards) {
      const json& from = s.at("rows").at(i);
      if (from.at("kernel") != to.at("kernel") || from.at("profile") != to.at("profile")) {
        throw input_error("cannot merge: the shards have other rows: run them anew");
      }
      cases += number_in(from, "cases");
      if (failed) continue;
      relations += number_in(from, "relations");
      bytes += number_in(from, "bytes");
      seconds += from.at("seconds").get<double>();
      digest = joined_digest(digest, from.at("digest").get<std::string>());
    }
    to["cases"] = cases;
    to["relations"] = relations;
    to["bytes"] = bytes;
    to["digest"] = digest;
    to["seconds"] = seconds;
  }
  return rows;
}

// The first of each kernel and profile, as one run finds them.
json joined_failures(const std::vector<json>& shards) {
  std::vector<json> all;
  for (const json& s : shards) {
    for (const json& f : s.at("failures")) all.push_back(f);
  }
  std::stable_sort(all.begin(), all.end(), [](const json& a, const json& b) {
    return number_in(a, "case") < number_in(b, "case");
  });
  json first = json::array();
  for (const json& f : all) {
    const bool later = std::any_of(first.begin(), first.end(), [&](const json& g) {
      return g.at("kernel") == f.at("kernel") && g.at("profile") == f.at("profile");
    });
    if (!later) first.push_back(f);
  }
  return first;
}

json joined_rejected(const std::vector<json>& shards) {
  std::vector<json> all;
  for (const json& s : shards) {
    for (const json& r : s.at("rejected")) all.push_back(r);
  }
  std::sort(all.begin(), all.end(), [](const json& a, const json& b) {
    return number_in(a, "case") < number_in(b, "case");
  });
  return all;
}

// Cases and digest follow from the rows.
void sum_up(json& out) {
  std::uint64_t cases = 0;
  std::string digest(64, '0');
  for (const json& row : out.at("rows")) {
    cases += number_in(row, "cases");
    digest = joined_digest(digest, row.at("digest").get<std::string>());
  }
  out["cases"] = cases;
  out["digest"] = digest;
}

json joined(const std::vector<std::string>& paths, const std::vector<json>& shards) {
  std::vector<named_shard> there;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const json& s = shards[i];
    if (!s.contains("shard")) {
      throw input_error(paths[i] + " is a whole run, no shard: there is nothing to merge");
    }
    const auto refuse_other = [&](const char* what, const json& a, const json& b) {
      if (a.at(what) == b.at(what)) return;
      throw input_error(
          fmt::format("cannot merge: {} and {} differ in '{}': merge the shards of one run",
                      paths[0], paths[i], what));
    };
    for (const char* what : {"of", "program_digest"}) {
      refuse_other(what, shards[0].at("shard"), s.at("shard"));
    }
    for (const char* what : in_common) refuse_other(what, shards[0], s);
    there.push_back({s.at("shard").at("index").get<int>(), paths[i]});
  }
  check_shards(there, shards[0].at("shard").at("of").get<int>());
  json out = shards[0];
  out.erase("shard");
  out["failures"] = joined_failures(shards);
  out["rows"] = joined_rows(shards, out["failures"]);
  out["rejected"] = joined_rejected(shards);
  sum_up(out);
  if (!out.at("cases_of_all").is_null() && !out.at("rows").empty() &&
      out.at("cases") != out.at("cases_of_all") && out.at("seconds_each").is_null()) {
    throw input_error(fmt::format("the shards hold {} of {} cases: run them anew",
                                  number_in(out, "cases"), number_in(out, "cases_of_all")));
  }
  return out;
}

int status_of(const json& out) {
  const json& failures = out.at("failures");
  const bool broken = std::any_of(failures.begin(), failures.end(),
                                  [](const json& f) { return f.at("outcome") != "failed"; });
  if (broken) return 3;
  const bool clean = failures.empty() && out.at("rejected").empty() && out.at("cases") != 0;
  return clean ? 0 : 1;
}

std::string text_of(const json& j, const char* name) {
  return printable(j.at(name).get<std::string>());
}

void print_merged(const json& out, std::size_t shards) {
  std::uint64_t relations = 0, bytes = 0;
  for (const json& row : out.at("rows")) {
    relations += number_in(row, "relations");
    bytes += number_in(row, "bytes");
  }
  for (const json& f : out.at("failures")) {
    const std::string file = text_of(f, "file");
    fmt::print("FAILED {} in profile {}, case {} ({}): {}\n", text_of(f, "kernel"),
               text_of(f, "profile"), number_in(f, "case"), text_of(f, "property"),
               file.empty() ? "not saved" : "again: kvcts run --vectors '" + file + "'");
  }
  fmt::print("fuzz of {} shards: {} cases, digest {}\n", shards, number_in(out, "cases"),
             text_of(out, "digest"));
  if (out.at("failures").empty()) {
    fmt::print("verdict: nothing found: {} relations, {} bytes compared, 0 differ\n", relations,
               grouped(bytes));
  } else {
    fmt::print("verdict: does not conform: {} of {} kernels in a profile fail\n",
               out.at("failures").size(), out.at("rows").size());
  }
}

}  // namespace

void check_fuzz_path(const std::string& path) {
  refuse_unwritten(path, replaced_file(path).write(""), "--json");
}

void write_fuzz(const std::string& path, const fuzz_report& report, const fuzz_options& options,
                const candidate& subject) {
  json out;
  out["schema"] = schema;
  out["schema_version"] = 1;
  if (!options.part.is_whole()) {
    out["shard"] = {{"index", options.part.index},
                    {"of", options.part.count},
                    {"program_digest", program_digest()}};
  }
  json about = {{"name", subject.name()}, {"version", subject.version()}};
  const std::map<std::string, std::string> more = subject.about();
  const auto digest = more.find("candidate library sha256");
  if (digest != more.end()) about["sha256"] = digest->second;
  out["candidate"] = about;
  out["seed"] = options.seed;
  out["cases_of_all"] = nullptr;
  if (options.cases || !options.seconds) out["cases_of_all"] = options.cases.value_or(1000);
  out["seconds_each"] = nullptr;
  if (options.seconds) out["seconds_each"] = *options.seconds;
  out["profiles"] = json::array();
  for (const profile p : options.profiles) out["profiles"].push_back(name_of(p));
  out["kernels"] = options.kernels;
  out["not_claimed"] = report.not_claimed;
  out["rows"] = json::array();
  for (const auto& [of, row] : report.rows) {
    out["rows"].push_back({{"kernel", of.first},
                           {"profile", name_of(of.second)},
                           {"cases", row.cases},
                           {"relations", row.relations},
                           {"bytes", row.bytes},
                           {"digest", row.digest},
                           {"seconds", row.seconds}});
  }
  out["failures"] = json::array();
  for (const fuzz_failure& f : report.failures) out["failures"].push_back(failure_of(f));
  out["rejected"] = json::array();
  for (const fuzz_report::rejection& r : report.rejected) {
    out["rejected"].push_back({{"case", r.number}, {"text", r.text}});
  }
  sum_up(out);
  write_json(path, out, "--json");
}

bool is_fuzz_file(const std::string& path) {
  const json j = object_in(path);
  return j.is_object() && j.value("schema", json()) == schema;
}

int merge_fuzz(const std::vector<std::string>& paths, const std::string& folder) {
  std::vector<json> shards;
  for (const std::string& path : paths) {
    json content = object_in(path);
    if (!content.is_object() || content.value("schema", json()) != schema) {
      throw input_error(path + " is no result of kvcts fuzz --json, as the first is");
    }
    if (content.value("schema_version", json()) != 1) {
      throw input_error(path + " is of another version of kvcts: run it anew");
    }
    shards.push_back(std::move(content));
  }
  json out;
  try {
    out = joined(paths, shards);
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    write_json((fs::path(folder) / "fuzz.json").string(), out, "folder for -o");
    print_merged(out, paths.size());
    return status_of(out);
  } catch (const json::exception& error) {
    throw input_error(std::string("a result of kvcts fuzz is damaged: ") + error.what());
  }
}

}  // namespace kvcts
