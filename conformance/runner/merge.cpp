#include "conformance/runner/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "conformance/runner/run.h"
#include "conformance/runner/shard.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

// What may differ from machine to machine.
bool is_of_the_machine(const std::string& key) {
  return key == "host" || key == "system" || key == "cores" || key == "time" ||
         key == "candidate library" || key == "devices";
}

std::string value_of(const run_result& r, const std::string& key) {
  const auto found = r.environment.find(key);
  return found == r.environment.end() ? "" : found->second;
}

// Throws where `b` is no shard of what `a` is one of.
void check_alike(const shard_report& a, const shard_report& b) {
  const auto same = [&](const std::string& what, const std::string& of_a, const std::string& of_b) {
    if (of_a == of_b) return;
    throw input_error("cannot merge: " + a.path + " is of " + what + " '" + of_a + "', " + b.path +
                      " of '" + of_b + "': merge the shards of one run");
  };
  const run_result& x = a.result;
  const run_result& y = b.result;
  same("shards", std::to_string(x.shards), std::to_string(y.shards));
  same("profile", x.profile, y.profile);
  same("level", x.level, y.level);
  same("seed", std::to_string(x.seed), std::to_string(y.seed));
  same("candidate", x.candidate, y.candidate);
  same("candidate version", x.candidate_version, y.candidate_version);
  std::set<std::string> keys;
  for (const run_result* r : {&x, &y}) {
    for (const auto& [key, value] : r->environment) keys.insert(key);
  }
  for (const std::string& key : keys) {
    if (!is_of_the_machine(key)) same(key, value_of(x, key), value_of(y, key));
  }
  same("program", x.program_digest, y.program_digest);
  same("suite", x.plan_digest, y.plan_digest);
  same("cases", std::to_string(x.cases_of_all), std::to_string(y.cases_of_all));
}

// In the order of the shards. Throws where one is missing or there twice.
std::vector<const shard_report*> in_order(const std::vector<shard_report>& reports) {
  const int shards = reports.front().result.shards;
  std::vector<named_shard> there;
  for (const shard_report& r : reports) there.push_back({r.result.shard, r.path});
  check_shards(there, shards);
  std::vector<const shard_report*> ordered(static_cast<std::size_t>(shards), nullptr);
  for (const shard_report& r : reports) {
    ordered.at(static_cast<std::size_t>(r.result.shard) - 1) = &r;
  }
  return ordered;
}

void join_environment(run_result& to, const run_result& from) {
  for (const auto& [key, value] : from.environment) {
    std::string& there = to.environment.emplace(key, value).first->second;
    if (there == value) continue;
    if (key == "time") {
      there = std::min(there, value);
      continue;
    }
    if ((", " + there + ", ").find(", " + value + ", ") == std::string::npos) there += ", " + value;
  }
}

// The shards' cases in the order of the plan. Throws where a place is empty or taken twice.
std::vector<case_result> join_cases(const std::vector<const shard_report*>& shards) {
  const std::uint64_t all = shards.front()->result.cases_of_all;
  std::vector<case_result> cases;
  for (const shard_report* s : shards) {
    cases.insert(cases.end(), s->result.cases.begin(), s->result.cases.end());
  }
  std::stable_sort(cases.begin(), cases.end(), [](const case_result& a, const case_result& b) {
    return a.position < b.position;
  });
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(all, cases.size()); ++i) {
    if (i < cases.size() && cases[i].position == i && i < all) continue;
    const bool twice = i < cases.size() && cases[i].position < i;
    throw input_error(twice ? "case " + cases[i].kernel + "/" + cases[i].name + " (number " +
                                  std::to_string(cases[i].position) +
                                  ") is in the shards twice: run them anew"
                            : "case number " + std::to_string(i) + " of " + std::to_string(all) +
                                  " is in no shard: run them anew");
  }
  for (case_result& c : cases) c.position = 0;
  return cases;
}

// Every shard names each sweep, some without inputs.
std::vector<sweep_result> join_sweeps(const std::vector<const shard_report*>& shards) {
  std::vector<sweep_result> joined = shards.front()->result.sweeps;
  for (std::size_t s = 1; s < shards.size(); ++s) {
    const std::vector<sweep_result>& more = shards[s]->result.sweeps;
    for (std::size_t i = 0; i < joined.size(); ++i) {
      sweep_result& to = joined[i];
      if (i >= more.size() || more[i].name != to.name) {
        throw input_error(shards[s]->path + ": has no sweep " + to.name + ": run it anew");
      }
      const sweep_result& from = more[i];
      to.inputs += from.inputs;
      to.seconds += from.seconds;
      const bool earlier = to.mismatches == 0 || from.first_piece < to.first_piece;
      if (from.mismatches != 0 && earlier) {
        to.first_piece = from.first_piece;
        to.first_mismatch = from.first_mismatch;
      }
      to.mismatches += from.mismatches;
    }
  }
  for (const sweep_result& s : joined) {
    if (s.inputs == s.inputs_in_all) continue;
    throw input_error("sweep " + s.name + ": the shards have " + std::to_string(s.inputs) +
                      " of its " + std::to_string(s.inputs_in_all) + " inputs: run them anew");
  }
  return joined;
}

const case_result* smallest_failure(const run_result& r, const std::string& kernel) {
  const case_result* found = nullptr;
  for (const case_result& c : r.cases) {
    if (c.kernel != kernel || c.what != outcome::failed) continue;
    if (found == nullptr || c.bytes_compared < found->bytes_compared ||
        (c.bytes_compared == found->bytes_compared && c.position < found->position)) {
      found = &c;
    }
  }
  return found;
}

// Leaves the explanations that another shard's cases have too, if any.
void narrow(diagnosis& found, const diagnosis& other) {
  if (found.explanations.size() < 2) return;
  std::vector<explanation> left;
  for (const explanation& e : found.explanations) {
    const bool there =
        std::any_of(other.explanations.begin(), other.explanations.end(),
                    [&](const explanation& o) { return o.complete && o.faults == e.faults; });
    if (there) left.push_back(e);
  }
  if (!left.empty()) found.explanations = std::move(left);
}

// As in one run: of a kernel's smallest failing case, narrowed by what larger ones say.
std::vector<diagnosis> join_diagnoses(const std::vector<const shard_report*>& shards) {
  struct one {
    const diagnosis* what;
    std::uint64_t bytes, position;
  };
  std::map<std::string, std::vector<one>> by_kernel;
  for (const shard_report* s : shards) {
    for (const diagnosis& d : s->result.diagnoses) {
      const case_result* c = smallest_failure(s->result, d.kernel);
      if (c != nullptr) by_kernel[d.kernel].push_back({&d, c->bytes_compared, c->position});
    }
  }
  std::vector<diagnosis> joined;
  for (auto& [kernel, all] : by_kernel) {
    std::sort(all.begin(), all.end(), [](const one& a, const one& b) {
      return std::pair(a.bytes, a.position) < std::pair(b.bytes, b.position);
    });
    joined.push_back(*all.front().what);
    for (const one& o : all) narrow(joined.back(), *o.what);
  }
  return joined;
}

}  // namespace

run_result merge_shards(const std::vector<shard_report>& reports) {
  if (reports.empty()) throw input_error("nothing to merge: name the shards' reports");
  for (const shard_report& r : reports) {
    if (r.result.shards == 1) {
      throw input_error(r.path + " is a whole run, no shard: there is nothing to merge");
    }
    check_alike(reports.front(), r);
  }
  const std::vector<const shard_report*> shards = in_order(reports);
  run_result merged = shards.front()->result;
  merged.shard = merged.shards = 1;
  merged.cases_of_all = 0;
  merged.plan_digest.clear();
  merged.program_digest.clear();
  merged.cases = join_cases(shards);
  merged.sweeps = join_sweeps(shards);
  merged.diagnoses = join_diagnoses(shards);
  for (const shard_report* s : shards) {
    join_environment(merged, s->result);
    for (const std::string& notice : s->result.notices) {
      const auto& there = merged.notices;
      if (std::find(there.begin(), there.end(), notice) == there.end()) {
        merged.notices.push_back(notice);
      }
    }
  }
  sum_up(merged);
  return merged;
}

}  // namespace kvcts
