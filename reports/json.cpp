#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "reference/numerics/rules.h"
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
  out["message"] = c.message;
  out["replay"] = c.replay;
  out["output_digests"] = json(c.output_digests);
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
  for (const outcome what : {outcome::passed, outcome::failed, outcome::unsupported,
                             outcome::crashed, outcome::timed_out}) {
    out[std::string(name_of(what))] = cases[what];
  }
  out["bytes_compared"] = compared;
  out["bytes_different"] = different;
  out["seconds"] = seconds;
  return out;
}

}  // namespace

std::string report_json(const run_result& result) {
  json out;
  out["schema"] = "kvcts-report";
  out["schema_version"] = 1;
  out["verdict"] = result.verdict;
  out["candidate"] = {{"name", result.candidate}, {"version", result.candidate_version}};
  out["profile"] = {{"name", result.profile}, {"version", profile_version}};
  out["level"] = result.level;
  out["seed"] = result.seed;
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
  out["cases"] = json::array();
  for (const case_result& c : result.cases) {
    out["cases"].push_back(case_of(c, result.shards > 1));
  }
  // Names come from outside: bytes that are not UTF-8 become U+FFFD.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace kvcts
