#include "conformance/submission/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/runner/oracle.h"
#include "conformance/submission/parts.h"
#include "reference/contract/contract.h"
#include "reports/reports.h"
#include "vectors/file.h"
#include "vectors/version.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

// Names come from outside: bytes that are not UTF-8 become U+FFFD.
std::string text_of(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string digest_of_text(std::string_view text) {
  return sha256(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// The same on every machine: "vectors/golden/mxfp4_q_quant_ieee.h5".
std::string short_source(const std::string& source) {
  if (source.find('/') == std::string::npos) return source;
  const fs::path path(source);
  return "vectors/" + path.parent_path().filename().string() + "/" + path.filename().string();
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

bool is_date(const std::string& text) {
  constexpr std::string_view form = "dddd-dd-dd";
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  const int year = std::stoi(text.substr(0, 4)), month = std::stoi(text.substr(5, 2)),
            day = std::stoi(text.substr(8, 2));
  if (month < 1 || month > 12) return false;
  constexpr std::array<int, 12> days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day >= 1 && day <= days[month - 1] + (leap && month == 2 ? 1 : 0);
}

// One line of printable text.
std::string line_at(const json& from, const char* name, const std::string& where) {
  if (!from.contains(name) || !from[name].is_string()) {
    throw input_error(fmt::format("{}: \"{}\" is missing or no text", where, name));
  }
  std::string text = from[name];
  const bool control =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (text.find_first_not_of(' ') == std::string::npos || control) {
    throw input_error(fmt::format("{}: \"{}\" is to be one line of text", where, name));
  }
  return text;
}

waiver waiver_from(const json& from, const std::string& where, const std::string& today) {
  constexpr std::size_t fields = 5;
  if (!from.is_object() || from.size() != fields) {
    throw input_error(where + ": is to hold kernel, case, reason, by and until");
  }
  waiver w;
  w.kernel = line_at(from, "kernel", where);
  w.cases = line_at(from, "case", where);
  w.reason = line_at(from, "reason", where);
  w.by = line_at(from, "by", where);
  w.until = line_at(from, "until", where);
  const std::vector<const kernel_contract*>& known = contracts();
  if (std::none_of(known.begin(), known.end(),
                   [&](const kernel_contract* c) { return c->name == w.kernel; })) {
    throw input_error(fmt::format("{}: unknown kernel '{}': see kvcts list", where, w.kernel));
  }
  if (!is_date(w.until)) {
    throw input_error(
        fmt::format("{}: \"until\" is '{}', not a date such as 2027-06-30", where, w.until));
  }
  if (w.until < today) {
    throw input_error(fmt::format("{}: it ended on {}: take it out or renew it", where, w.until));
  }
  return w;
}

bool covers(const waiver& w, const case_result& c) {
  return is_waivable(c) && is_named(w.kernel, w.cases, c.kernel, c.name);
}

template <class cases>
void check_waivers_of(const std::vector<waiver>& waivers, const cases& of_suite) {
  for (const waiver& w : waivers) {
    if (std::none_of(of_suite.begin(), of_suite.end(), [&](const auto& c) {
          return is_named(w.kernel, w.cases, c.kernel, c.name);
        })) {
      throw input_error(
          fmt::format("waiver of {}/{}: the suite has no such case: see kvcts list {}", w.kernel,
                      w.cases, w.kernel));
    }
  }
}

std::string digest_of_this_program() {
  static const std::string digest = [] {
    std::ifstream in("/proc/self/exe", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return digest_of_text(bytes);
  }();
  return digest;
}

json list_of(const std::string& text) {
  json list = json::array();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(", ", at), text.size());
    list.push_back(text.substr(at, comma - at));
    at = comma + 2;
  }
  return list;
}

std::string manifest_text(const suite_manifest& m, const std::string& version) {
  json out;
  out["schema"] = "kvcts-suite";
  out["schema_version"] = 1;
  out["suite_version"] = suite_version;
  out["kvcts_version"] = version;
  out["profile"] = m.profile;
  out["level"] = m.level;
  out["seed"] = m.seed;
  out["suite_digest"] = m.suite_digest;
  out["cases"] = json::array();
  for (const manifest_case& c : m.cases) {
    out["cases"].push_back({{"kernel", c.kernel},
                            {"name", c.name},
                            {"source", c.source},
                            {"profile", c.profile},
                            {"provenance", c.provenance},
                            {"flags", c.flags},
                            {"inputs", c.inputs},
                            {"digest", c.digest},
                            {"expected", c.expected}});
  }
  return text_of(out);
}

}  // namespace

suite_manifest manifest_of(const std::vector<planned_case>& plan, const run_options& options) {
  suite_manifest made;
  made.profile = name_of(options.rules);
  made.level = name_of(options.up_to);
  made.seed = options.seed;
  made.cases.resize(plan.size());
  for_each_parallel(plan.size(), options.threads, [&](std::size_t i) {
    const planned_case& planned = plan[i];
    test_case c = planned.load();
    if (c.expected.empty()) fill_expected(c, planned.rules);
    manifest_case& to = made.cases[i];
    to.kernel = planned.kernel;
    to.name = planned.name;
    to.source = short_source(planned.source);
    to.profile = name_of(planned.rules);
    to.provenance = planned.provenance;
    to.flags = c.flags;
    for (const buffer& b : c.expected) {
      to.expected[b.name] = content_digest(b.data(), b.size(), b.holes());
    }
    to.digest = digest_of(c);
    c.expected.clear();
    to.inputs = digest_of(c);
  });
  std::vector<std::string> digests;
  for (const manifest_case& c : made.cases) digests.push_back(c.digest);
  made.suite_digest = digest_of(made.profile, std::move(digests));
  return made;
}

std::string manifest_json(const suite_manifest& m) { return manifest_text(m, KVCTS_VERSION); }

// Without the program's version: a release that changes no case keeps the manifest.
std::string digest_of(const suite_manifest& m) { return digest_of_text(manifest_text(m, "")); }

suite_manifest parts::manifest_from(const std::string& text) {
  const json from = json::parse(text);
  suite_manifest m;
  m.profile = from.at("profile");
  m.level = from.at("level");
  m.seed = from.at("seed");
  m.suite_digest = from.at("suite_digest");
  for (const json& one : from.at("cases")) {
    manifest_case c;
    c.kernel = one.at("kernel");
    c.name = one.at("name");
    c.source = one.at("source");
    c.profile = one.at("profile");
    c.provenance = one.at("provenance");
    c.flags = one.at("flags").get<std::vector<std::string>>();
    c.inputs = one.at("inputs");
    c.digest = one.at("digest");
    c.expected = one.at("expected").get<std::map<std::string, std::string>>();
    m.cases.push_back(std::move(c));
  }
  return m;
}

std::vector<waiver> waivers_from(const std::string& text, const std::string& today) {
  const json from = json::parse(text, nullptr, false);
  if (from.is_discarded() || !from.is_object() || !from.contains("waivers") ||
      !from["waivers"].is_array()) {
    throw input_error("is no JSON object with a list \"waivers\": see docs/acceptance.md");
  }
  std::vector<waiver> list;
  for (const json& one : from["waivers"]) {
    list.push_back(waiver_from(one, fmt::format("waiver {}", list.size() + 1), today));
  }
  return list;
}

std::vector<waiver> read_waivers(const std::string& path, const std::string& today) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw input_error(path + ": cannot be read: give --waivers a JSON file");
  try {
    return waivers_from(text, today);
  } catch (const input_error& error) {
    throw input_error(path + ": " + error.what());
  }
}

void check_waivers(const std::vector<waiver>& waivers, const std::vector<planned_case>& plan) {
  check_waivers_of(waivers, plan);
}

void check_waivers(const std::vector<waiver>& waivers, const suite_manifest& suite) {
  check_waivers_of(waivers, suite.cases);
}

int apply_waivers(const std::vector<waiver>& waivers, bool require_full, run_result& result) {
  run_result judged = result;
  const auto waived = [&](const case_result& c) {
    return std::any_of(waivers.begin(), waivers.end(),
                       [&](const waiver& w) { return covers(w, c); });
  };
  judged.cases.erase(std::remove_if(judged.cases.begin(), judged.cases.end(), waived),
                     judged.cases.end());
  const std::size_t count = result.cases.size() - judged.cases.size();
  if (count == 0) return result.exit_status(require_full);
  for (std::string& notice : parts::waiver_notices(waivers, result)) {
    result.notices.push_back(std::move(notice));
  }
  const std::string verdict = verdict_of(judged);
  constexpr std::string_view plain = "conforms", limited = "conforms (";
  if (verdict.rfind(limited, 0) == 0) {
    result.verdict =
        fmt::format("conforms with waivers ({}; {}", count, verdict.substr(limited.size()));
  } else if (verdict.rfind(plain, 0) == 0) {
    result.verdict =
        fmt::format("conforms with waivers ({}){}", count, verdict.substr(plain.size()));
  } else {
    result.verdict = fmt::format("{} ({} more are waived)", verdict, count);
  }
  return std::max(judged.exit_status(require_full), require_full ? 1 : 0);
}

std::vector<std::string> parts::waiver_notices(const std::vector<waiver>& waivers,
                                               const run_result& result) {
  std::vector<std::string> lines;
  for (const waiver& w : waivers) {
    const auto count = std::count_if(result.cases.begin(), result.cases.end(),
                                     [&](const case_result& c) { return covers(w, c); });
    if (count == 0) continue;
    lines.push_back(fmt::format("waived: {}/{}: {}: {} ({}, until {})", w.kernel, w.cases,
                                count == 1 ? "1 case fails" : fmt::format("{} cases fail", count),
                                w.reason, w.by, w.until));
  }
  return lines;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 16> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &utc);
  return text.data();
}

run_result reproducible(run_result result, const candidate& subject) {
  std::set<std::string> kernels;
  const std::string path = subject.argument();
  const bool is_library = path.find('/') != std::string::npos;
  const std::string file = fs::path(path).filename().string();
  const auto shorten = [&](std::string& text) {
    if (is_library) replace_all(text, path, "./" + file);
  };
  for (case_result& c : result.cases) {
    const std::string source = short_source(c.source);
    if (source != c.source) replace_all(c.replay, c.source, source);
    c.source = source;
    c.seconds = 0;
    shorten(c.replay);
    shorten(c.message);
    if (subject.supports(c.kernel)) kernels.insert(c.kernel);
  }
  for (auto at = result.environment.begin(); at != result.environment.end();) {
    at = parts::is_reproducible(at->first) ? std::next(at) : result.environment.erase(at);
  }
  const std::string kvcts = digest_of_this_program();
  result.environment[std::string(parts::kvcts_digest)] = kvcts;
  result.environment["candidate kernels"] = fmt::format("{}", fmt::join(kernels, ", "));
  if (result.environment.count("candidate library") != 0) {
    result.environment["candidate library"] = fs::path(path).filename().string();
  } else {
    result.environment["candidate program sha256"] = kvcts;
  }
  // Speeds that this run measured; recorded ones stay.
  if (result.speed && result.speed->source.empty()) result.speed.reset();
  if (result.speed && result.speed->source[0] == '/') {
    result.speed->source = fs::path(result.speed->source).filename().string();
  }
  return result;
}

bool parts::is_reproducible(std::string_view key) {
  return key == "version" || key == "profile version" || key == kvcts_digest ||
         key.rfind("candidate", 0) == 0;
}

std::string parts::candidate_text(const run_result& reduced) {
  const auto about = [&](const char* key) {
    const auto at = reduced.environment.find(key);
    return at == reduced.environment.end() ? std::string() : at->second;
  };
  const bool is_library = !about("candidate library").empty();
  json out;
  out["schema"] = "kvcts-candidate";
  out["schema_version"] = 1;
  out["name"] = reduced.candidate;
  out["version"] = reduced.candidate_version;
  out["vendor"] = about("candidate vendor");
  out["kind"] = is_library ? "library" : "built-in";
  out["file"] = is_library ? about("candidate library") : "kvcts";
  out["sha256"] = candidate_digest(reduced);
  out["abi"] = about("candidate ABI");
  out["memory"] = about("candidate memory");
  out["kernels"] = list_of(about("candidate kernels"));
  out["profiles"] = list_of(about("candidate profiles"));
  out["flags_not_claimed"] = list_of(about("candidate flags not claimed"));
  return text_of(out);
}

std::string parts::candidate_digest(const run_result& reduced) {
  for (const char* key : {"candidate library sha256", "candidate program sha256"}) {
    const auto at = reduced.environment.find(key);
    if (at != reduced.environment.end()) return at->second;
  }
  return "";
}

std::string parts::statement_text(const run_result& reduced, const std::vector<waiver>& waivers) {
  json out;
  out["schema"] = "kvcts-statement";
  out["schema_version"] = 1;
  out["suite_version"] = suite_version;
  out["kvcts_version"] = KVCTS_VERSION;
  const auto kvcts = reduced.environment.find(std::string(kvcts_digest));
  out["kvcts_sha256"] = kvcts == reduced.environment.end() ? std::string() : kvcts->second;
  out["suite_digest"] = reduced.suite_digest;
  out["candidate"] = reduced.candidate;
  out["candidate_sha256"] = candidate_digest(reduced);
  out["verdict"] = reduced.verdict;
  out["waivers"] = json::array();
  for (const waiver& w : waivers) {
    out["waivers"].push_back({{"kernel", w.kernel},
                              {"case", w.cases},
                              {"reason", w.reason},
                              {"by", w.by},
                              {"until", w.until}});
  }
  return text_of(out);
}

std::string parts::environment_text(const std::map<std::string, std::string>& environment) {
  json out;
  out["schema"] = "kvcts-environment";
  out["schema_version"] = 1;
  out["environment"] = environment;
  return text_of(out);
}

std::map<std::string, std::string> parts::environment_from(const std::string& text) {
  return json::parse(text).at("environment").get<std::map<std::string, std::string>>();
}

std::vector<archive_member> parts::report_members(const run_result& reduced) {
  return {{"junit.xml", report_junit(reduced)},
          {"report.html", report_html(reduced)},
          {"report.json", report_json(reduced)},
          {"report.md", report_markdown(reduced)}};
}

std::string parts::sums_of(const std::vector<archive_member>& members) {
  std::map<std::string, std::string> sorted;
  for (const archive_member& m : members) {
    if (m.name != sums_name) sorted[m.name] = digest_of_text(m.content);
  }
  std::string lines;
  for (const auto& [name, digest] : sorted) lines += fmt::format("{}  {}\n", digest, name);
  return lines;
}

std::vector<archive_member> with_sums(std::vector<archive_member> members) {
  const std::string sums = parts::sums_of(members);
  for (archive_member& m : members) {
    if (m.name == parts::sums_name) {
      m.content = sums;
      return members;
    }
  }
  members.push_back({std::string(parts::sums_name), sums});
  return members;
}

std::vector<archive_member> submission_of(const run_result& measured, const run_result& reduced,
                                          const suite_manifest& manifest,
                                          const std::vector<waiver>& waivers, std::string log) {
  double seconds = 0;
  for (const case_result& c : measured.cases) seconds += c.seconds;
  std::map<std::string, std::string> environment = measured.environment;
  environment["seconds in the candidate"] = fmt::format("{:.3f}", seconds);
  std::vector<archive_member> members = parts::report_members(reduced);
  members.push_back({"candidate.json", parts::candidate_text(reduced)});
  members.push_back({"environment.json", parts::environment_text(environment)});
  members.push_back({"log.txt", std::move(log)});
  members.push_back({"manifest.json", manifest_json(manifest)});
  members.push_back({"statement.json", parts::statement_text(reduced, waivers)});
  return with_sums(std::move(members));
}

std::string reproducible_digest(const std::vector<archive_member>& members) {
  std::vector<archive_member> kept;
  for (const archive_member& m : members) {
    if (m.name != "environment.json") kept.push_back(m);
  }
  return digest_of_text(parts::sums_of(kept));
}

}  // namespace kvcts
