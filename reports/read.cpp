// report.json back into the result model.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "reference/layout/tensor.h"
#include "reports/reports.h"
#include "reports/text.h"

namespace kvcts {
namespace {

using json = nlohmann::json;

constexpr const char* advice = "; give the unchanged report.json of a run";

// A value and the way to it, for messages.
class node {
 public:
  node(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error((path_.empty() ? "the document" : path_) + ": " + what);
  }
  node operator[](const char* name) const {
    if (!value_->is_object()) refuse("must be an object");
    const auto member = value_->find(name);
    if (member == value_->end()) refuse(std::string("lacks ") + name);
    return {*member, path_ + "/" + name};
  }
  std::size_t size() const {
    if (!value_->is_array()) refuse("must be an array");
    return value_->size();
  }
  node item(std::size_t i) const {
    if (i >= size()) refuse("has too few items");
    return {(*value_)[i], path_ + "/" + std::to_string(i)};
  }
  bool has(const char* name) const { return value_->contains(name); }
  bool is_null() const { return value_->is_null(); }

  std::string text() const {
    if (!value_->is_string()) refuse("must be a string");
    return *value_;
  }
  std::uint64_t number() const {
    if (!value_->is_number_unsigned()) refuse("must be a whole number, 0 or above");
    return *value_;
  }
  double real() const {
    if (!value_->is_number()) refuse("must be a number");
    return *value_;
  }
  double real_or_infinite() const {
    return is_null() ? std::numeric_limits<double>::infinity() : real();
  }
  bool flag() const {
    if (!value_->is_boolean()) refuse("must be true or false");
    return *value_;
  }
  int count() const {
    const std::uint64_t n = number();
    if (n > std::numeric_limits<int>::max()) refuse("is too large");
    return static_cast<int>(n);
  }
  std::map<std::string, std::string> text_map() const {
    if (!value_->is_object()) refuse("must be an object");
    std::map<std::string, std::string> all;
    for (const auto& [name, value] : value_->items()) {
      all[name] = node(value, path_ + "/" + name).text();
    }
    return all;
  }
  // Each item as `make` reads it.
  template <class F>
  auto list(F make) const {
    std::vector<decltype(make(*this))> all;
    for (std::size_t i = 0; i < size(); ++i) all.push_back(make(item(i)));
    return all;
  }
  std::vector<std::string> texts() const {
    return list([](const node& one) { return one.text(); });
  }

 private:
  const json* value_;
  std::string path_;
};

outcome outcome_of(const node& n) {
  for (const outcome what : all_outcomes) {
    if (n.text() == name_of(what)) return what;
  }
  n.refuse("is no known outcome");
}

// One of the words that may stand there.
std::string word_of(const node& n, std::initializer_list<std::string_view> known) {
  std::string word = n.text();
  if (std::find(known.begin(), known.end(), word) == known.end()) n.refuse("is not known");
  return word;
}

difference difference_of(const node& n) {
  return {n["argument"].text(), n["byte"].number(), n["place"].text(), n["expected"].text(),
          n["got"].text()};
}

picture_region region_of(const node& n) {
  return {word_of(n["kind"], {"page", "row", "value", "scale", "pad"}), n["name"].text(),
          n["first"].number(), n["bytes"].number(), n["parts"].number()};
}

// Nothing may reach past the strip that is drawn.
void check_inside(const node& n, std::uint64_t first, std::uint64_t bytes, std::uint64_t all) {
  if (first > all || bytes > all - first) n.refuse("reaches past its strip");
}

picture_strip strip_of(const node& n) {
  picture_strip strip;
  strip.name = n["name"].text();
  strip.bytes = n["bytes"].number();
  if (strip.bytes == 0) n["bytes"].refuse("must be 1 or above");
  strip.regions = n["regions"].list([&](const node& one) {
    picture_region region = region_of(one);
    if (region.parts == 0) one["parts"].refuse("must be 1 or above");
    check_inside(one, region.first, region.bytes, strip.bytes);
    return region;
  });
  strip.wrong = n["wrong"].list([&](const node& one) {
    if (one.size() != 2) one.refuse("must be two numbers");
    const byte_run run = {one.item(0).number(), one.item(1).number()};
    check_inside(one, run.first, run.bytes, strip.bytes);
    return run;
  });
  strip.different = n["different"].number();
  return strip;
}

buffer_picture picture_of(const node& n) {
  return {n["argument"].text(), n["bytes"].number(), n["strips"].list(strip_of),
          n["left_out"].text()};
}

accuracy_row accuracy_of_argument(const node& n) {
  return {"",
          n["argument"].text(),
          n["values"].number(),
          n["sqnr_db"].real_or_infinite(),
          n["worst_relative"].real_or_infinite(),
          n["saturated"].real()};
}

accuracy_row accuracy_of_kernel(const node& n) {
  accuracy_row row = accuracy_of_argument(n);
  row.kernel = n["kernel"].text();
  return row;
}

case_result case_of(const node& n, bool of_shard) {
  case_result c;
  if (of_shard) {
    c.position = n["position"].number();
    c.digest = n["digest"].text();
  }
  c.kernel = n["kernel"].text();
  c.name = n["name"].text();
  c.flags = n["flags"].texts();
  c.provenance = word_of(n["provenance"], {"captured", "derived"});
  c.source = n["source"].text();
  c.what = outcome_of(n["outcome"]);
  c.bytes_compared = n["bytes_compared"].number();
  c.bytes_different = n["bytes_different"].number();
  if (c.what == outcome::passed && c.bytes_different != 0) {
    n["bytes_different"].refuse("must be 0 where a case passed");
  }
  constexpr std::size_t most_places = 8;
  if (n["places"].size() > most_places) n["places"].refuse("has more than 8");
  c.places = n["places"].list(difference_of);
  c.pictures = n["pictures"].list(picture_of);
  c.message = n["message"].text();
  c.replay = n["replay"].text();
  c.output_digests = n["output_digests"].text_map();
  c.accuracy = n["accuracy"].list(accuracy_of_argument);
  c.seconds = n["seconds"].real();
  return c;
}

explanation explanation_of(const node& n) {
  explanation e;
  const node faults = n["faults"];
  for (std::size_t i = 0; i < faults.size(); ++i) {
    e.faults.push_back(faults.item(i)["name"].text());
    e.texts.push_back(faults.item(i)["text"].text());
  }
  e.complete = n["complete"].flag();
  e.share = n["share"].real();
  return e;
}

diagnosis diagnosis_of(const node& n) {
  return {n["kernel"].text(), n["case"].text(), n["bytes_different"].number(),
          n["explanations"].list(explanation_of)};
}

speed_row speed_row_of(const node& n) {
  speed_row row = {n["op"].text(),      n["size"].text(),          n["bytes"].number(),
                   n["time_us"].real(), n["share_of_copy"].real(), std::nullopt};
  if (!n["target"].is_null()) row.target = n["target"].real();
  return row;
}

sweep_result sweep_of(const node& n) {
  return {n["name"].text(),           n["text"].text(),
          n["inputs"].number(),       n["inputs_in_all"].number(),
          n["mismatches"].number(),   n["first_piece"].number(),
          n["first_mismatch"].text(), n["seconds"].real()};
}

run_result result_of(const node& n) {
  if (n["schema"].text() != "kvcts-report") n["schema"].refuse("is not kvcts-report");
  if (const std::uint64_t version = n["schema_version"].number();
      version != static_cast<std::uint64_t>(report_schema_version)) {
    n["schema_version"].refuse("is " + std::to_string(version) + ", this program reads " +
                               std::to_string(report_schema_version));
  }
  run_result r;
  r.verdict = n["verdict"].text();
  r.candidate = n["candidate"]["name"].text();
  r.candidate_version = n["candidate"]["version"].text();
  r.profile = n["profile"]["name"].text();
  r.profile_rules = n["profile"]["version"].count();
  r.level = n["level"].text();
  r.seed = n["seed"].number();
  r.suite_version = n["suite_version"].count();
  r.suite_digest = n["suite_digest"].text();
  r.kernels_claimed = n["kernels"]["claimed"].count();
  r.kernels_total = n["kernels"]["total"].count();
  r.environment = n["environment"].text_map();
  r.notices = n["notices"].texts();
  r.diagnoses = n["diagnoses"].list(diagnosis_of);
  r.accuracy = n["accuracy"].list(accuracy_of_kernel);
  if (const node speed = n["speed"]; !speed.is_null()) {
    r.speed = speed_table{speed["candidate"].text(), speed["device"].text(), speed["source"].text(),
                          speed["copy_tb_s"].real(), speed["rows"].list(speed_row_of)};
  }
  if (const node a = n["adequacy"]; !a.is_null()) {
    r.adequacy = adequacy_score{a["faults"].number(), a["pairs"].number(), a["caught"].number(),
                                a["survivors"].texts()};
    if (r.adequacy->caught > r.adequacy->pairs) a["caught"].refuse("is above pairs");
  }
  if (n.has("sweeps")) r.sweeps = n["sweeps"].list(sweep_of);
  if (n.has("shard")) {
    const node s = n["shard"];
    r.shard = s["index"].count();
    r.shards = s["of"].count();
    if (r.shards < 2 || r.shard < 1 || r.shard > r.shards) s.refuse("must be one of two or more");
    r.cases_of_all = s["cases_of_all"].number();
    r.plan_digest = s["plan_digest"].text();
    r.program_digest = s["program_digest"].text();
  }
  r.cases = n["cases"].list([&](const node& one) { return case_of(one, r.shards > 1); });
  return r;
}

}  // namespace

case_result parse_case(const std::string& line) {
  const json document = json::parse(line, nullptr, false);
  if (document.is_discarded()) throw input_error("is no JSON");
  return case_of({document, ""}, true);
}

run_result parse_report(const std::string& text, const std::string& name) {
  std::string what;
  try {
    const json document = json::parse(text);
    run_result result = result_of({document, ""});
    // Totals that are not the cases' sums, fields of nobody: nothing may differ when it is written
    // again.
    const json again = json::parse(report_json(result));
    if (again == document) return result;
    const json changes = json::diff(document, again);
    what = changes.at(0).at("path").get<std::string>() + ": does not agree with the rest";
  } catch (const json::parse_error& error) {
    what = "no JSON (byte " + std::to_string(error.byte) + ")";
  } catch (const json::exception&) {
    what = "a number that no report holds";  // 1e999
  } catch (const input_error& error) {
    what = error.what();
  }
  throw input_error(name + ": " + what + advice);
}

run_result read_report(const std::string& path) {
  std::string text;
  std::error_code error;
  if (std::ifstream in(path, std::ios::binary); std::filesystem::is_regular_file(path, error)) {
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (text.empty()) throw input_error(path + ": cannot be read; give the report.json of a run");
  run_result result = parse_report(text, path);
  // Only waivers make a run good in which a case failed.
  if (standing_of(result) == standing::bad &&
      (result.verdict.rfind("conforms", 0) == 0 || result.verdict.rfind("equal: ", 0) == 0)) {
    throw input_error(path + ": /verdict: does not agree with the cases" + advice);
  }
  return result;
}

}  // namespace kvcts
