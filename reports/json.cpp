#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/reports.h"
#include "reports/text.h"

namespace kvcts {
namespace {

using json = nlohmann::ordered_json;

json places_of(const case_result& c) {
  json places = json::array();
  for (const difference& d : c.places) {
    places.push_back({{"argument", d.argument},
                      {"byte", d.byte},
                      {"place", d.place},
                      {"expected", d.expected},
                      {"got", d.got}});
  }
  return places;
}

json picture_of(const buffer_picture& p) {
  json out = {{"argument", p.argument}, {"bytes", p.bytes}, {"strips", json::array()}};
  for (const picture_strip& s : p.strips) {
    json strip = {{"name", s.name}, {"bytes", s.bytes}, {"regions", json::array()}};
    for (const picture_region& r : s.regions) {
      strip["regions"].push_back({{"kind", r.kind},
                                  {"name", r.name},
                                  {"first", r.first},
                                  {"bytes", r.bytes},
                                  {"parts", r.parts}});
    }
    strip["wrong"] = json::array();
    for (const byte_run& run : s.wrong) strip["wrong"].push_back({run.first, run.bytes});
    strip["different"] = s.different;
    out["strips"].push_back(std::move(strip));
  }
  out["left_out"] = p.left_out;
  return out;
}

// JSON has no infinity: null.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json accuracy_of(const std::vector<accuracy_row>& rows) {
  json out = json::array();
  for (const accuracy_row& row : rows) {
    json one;
    if (!row.kernel.empty()) one["kernel"] = row.kernel;
    one["argument"] = row.argument;
    one["values"] = row.values;
    one["sqnr_db"] = finite(row.sqnr_db);
    one["worst_relative"] = finite(row.worst_relative);
    one["saturated"] = row.saturated;
    out.push_back(std::move(one));
  }
  return out;
}

json case_of(const case_result& c, bool of_shard) {
  json out;
  if (of_shard) {
    out["position"] = c.position;
    out["digest"] = c.digest;
  }
  out["kernel"] = c.kernel;
  out["name"] = c.name;
  out["flags"] = c.flags;
  out["provenance"] = c.provenance;
  out["source"] = c.source;
  out["outcome"] = name_of(c.what);
  out["bytes_compared"] = c.bytes_compared;
  out["bytes_different"] = c.bytes_different;
  out["places"] = places_of(c);
  out["pictures"] = json::array();
  for (const buffer_picture& p : c.pictures) out["pictures"].push_back(picture_of(p));
  out["message"] = c.message;
  out["replay"] = c.replay;
  out["output_digests"] = json(c.output_digests);
  out["accuracy"] = accuracy_of(c.accuracy);
  out["seconds"] = c.seconds;
  return out;
}

json diagnosis_of(const diagnosis& d) {
  json out;
  out["kernel"] = d.kernel;
  out["case"] = d.name;
  out["bytes_different"] = d.bytes_different;
  out["explanations"] = json::array();
  for (const explanation& e : d.explanations) {
    json faults = json::array();
    for (std::size_t i = 0; i < e.faults.size(); ++i) {
      faults.push_back({{"name", e.faults[i]}, {"text", e.texts[i]}});
    }
    out["explanations"].push_back(
        {{"faults", faults}, {"complete", e.complete}, {"share", e.share}});
  }
  return out;
}

json speed_of(const speed_table& t) {
  json out = {{"candidate", t.candidate},
              {"device", t.device},
              {"source", t.source},
              {"copy_tb_s", t.copy_tb_s},
              {"rows", json::array()}};
  for (const speed_row& r : t.rows) {
    out["rows"].push_back({{"op", r.op},
                           {"size", r.size},
                           {"bytes", r.bytes},
                           {"time_us", r.time_us},
                           {"share_of_copy", r.share_of_copy},
                           {"target", r.target ? json(*r.target) : json(nullptr)}});
  }
  return out;
}

json adequacy_of(const adequacy_score& a) {
  return {
      {"faults", a.faults}, {"pairs", a.pairs}, {"caught", a.caught}, {"survivors", a.survivors}};
}

json sweep_of(const sweep_result& s) {
  return {{"name", s.name},
          {"text", s.text},
          {"inputs", s.inputs},
          {"inputs_in_all", s.inputs_in_all},
          {"mismatches", s.mismatches},
          {"first_piece", s.first_piece},
          {"first_mismatch", s.first_mismatch},
          {"seconds", s.seconds}};
}

json totals_of(const run_result& result) {
  std::map<outcome, std::uint64_t> cases;
  std::uint64_t compared = 0;
  std::uint64_t different = 0;
  double seconds = 0;
  for (const case_result& c : result.cases) {
    ++cases[c.what];
    compared += c.bytes_compared;
    different += c.bytes_different;
    seconds += c.seconds;
  }
  json out;
  out["cases"] = result.cases.size();
  for (const outcome what : all_outcomes) {
    out[std::string(name_of(what))] = cases[what];
  }
  out["bytes_compared"] = compared;
  out["bytes_different"] = different;
  out["seconds"] = seconds;
  return out;
}

}  // namespace

std::string case_line(const case_result& c) {
  return case_of(c, true).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string report_json(const run_result& result) {
  json out;
  out["schema"] = "kvcts-report";
  out["schema_version"] = report_schema_version;
  out["verdict"] = result.verdict;
  out["candidate"] = {{"name", result.candidate}, {"version", result.candidate_version}};
  out["profile"] = {{"name", result.profile}, {"version", result.profile_rules}};
  out["level"] = result.level;
  out["seed"] = result.seed;
  out["suite_version"] = result.suite_version;
  out["suite_digest"] = result.suite_digest;
  if (result.shards > 1) {
    out["shard"] = {{"index", result.shard},
                    {"of", result.shards},
                    {"cases_of_all", result.cases_of_all},
                    {"plan_digest", result.plan_digest},
                    {"program_digest", result.program_digest}};
  }
  out["kernels"] = {{"claimed", result.kernels_claimed}, {"total", result.kernels_total}};
  out["totals"] = totals_of(result);
  out["environment"] = json(result.environment);
  out["notices"] = result.notices;
  out["diagnoses"] = json::array();
  for (const diagnosis& d : result.diagnoses) out["diagnoses"].push_back(diagnosis_of(d));
  out["accuracy"] = accuracy_of(result.accuracy);
  out["speed"] = result.speed ? speed_of(*result.speed) : json(nullptr);
  out["adequacy"] = result.adequacy ? adequacy_of(*result.adequacy) : json(nullptr);
  if (!result.sweeps.empty()) {
    out["sweeps"] = json::array();
    for (const sweep_result& s : result.sweeps) out["sweeps"].push_back(sweep_of(s));
  }
  out["cases"] = json::array();
  for (const case_result& c : result.cases) {
    out["cases"].push_back(case_of(c, result.shards > 1));
  }
  // Names come from outside: bytes that are not UTF-8 become U+FFFD.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace kvcts
