#include "conformance/runner/evidence.h"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "conformance/runner/oracle.h"
#include "optimized/optimized.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

std::string base_name(const std::string& source) {
  return source == "built-in" ? source : std::filesystem::path(source).filename().string();
}

// Of what goes in: names, flags, attributes and inputs.
std::string digest_of_inputs(test_case c) {
  c.expected.clear();
  c.actual.clear();
  return digest_of(c);
}

struct recomputed {
  std::string inputs;
  std::map<std::string, std::string> outputs;
};

recomputed recompute(const planned_case& planned) {
  test_case c = planned.load();
  recomputed made;
  fill_expected(c, planned.rules);
  for (const buffer& b : c.expected) {
    made.outputs[b.name] = content_digest(b.data(), b.size(), b.holes());
  }
  made.inputs = digest_of_inputs(std::move(c));
  return made;
}

}  // namespace

evidence evidence_of(const run_result& result, const std::vector<planned_case>& plan) {
  evidence e;
  e.candidate = result.candidate;
  const auto text = [&](const char* key) {
    const auto at = result.environment.find(key);
    return at == result.environment.end() ? std::string() : at->second;
  };
  e.time = text("time");
  e.version = text("version");
  if (result.candidate == "cuda") {
    const cuda_status status = cuda_available();
    e.device = status.device;
    e.driver = status.driver;
    e.compiler = status.compiler;
  } else {
    e.device = result.candidate_version;
    e.compiler = text("compiler");
  }
  e.sources = kernel_sources_digest;
  e.profile = result.profile;
  e.level = result.level;
  e.seed = result.seed;
  e.cases.resize(result.cases.size());
  for_each_parallel(result.cases.size(), 0, [&](std::size_t i) {
    const case_result& c = result.cases[i];
    e.cases[i] = {c.kernel, c.name, base_name(c.source), digest_of_inputs(plan[i].load()),
                  c.output_digests};
  });
  return e;
}

evidence_check check_evidence(
    const evidence& e, int threads,
    const std::function<std::optional<std::string>(const std::string&)>& file_of,
    const std::string& sources) {
  using key = std::tuple<std::string, std::string, std::string>;  // source, kernel, name
  std::map<key, planned_case> plan;
  std::set<std::string> files;
  for (const evidence_case& c : e.cases) files.insert(c.source);
  const auto add = [&](std::vector<planned_case> cases, const std::string& source) {
    for (planned_case& c : cases) plan.emplace(key{source, c.kernel, c.name}, std::move(c));
  };
  add(plan_built_in(kernel_filter(""), level_from_name(e.level), e.seed,
                    profile_from_name(e.profile)),
      "built-in");
  const std::size_t built_in = plan.size();
  for (const std::string& file : files) {
    if (file == "built-in") continue;
    if (const auto path = file_of(file)) {
      add(plan_file(*path, kernel_filter(implemented_kernels(","))), file);
    }
  }

  std::mutex guard;
  evidence_check found;
  std::size_t changed = 0, wrong = 0, recorded_built_in = 0;
  std::string first_wrong;
  for (const evidence_case& c : e.cases) recorded_built_in += c.source == "built-in";
  for_each_parallel(e.cases.size(), threads, [&](std::size_t i) {
    const evidence_case& c = e.cases[i];
    const auto at = plan.find(key{c.source, c.kernel, c.name});
    std::optional<recomputed> now;
    if (at != plan.end()) now = recompute(at->second);
    const std::lock_guard<std::mutex> hold(guard);
    if (!now || now->inputs != c.inputs) {
      ++changed;
      return;
    }
    found.outputs += now->outputs.size();
    if (now->outputs == c.outputs) return;
    ++wrong;
    const std::string name = fmt::format("{}/{}", c.kernel, c.name);
    if (first_wrong.empty() || name < first_wrong) first_wrong = name;
  });
  if (recorded_built_in < built_in) changed += built_in - recorded_built_in;

  const std::string what = fmt::format("{} outputs of {} cases on {}, profile {}, {}",
                                       found.outputs, e.cases.size(), e.device, e.profile, e.time);
  if (wrong != 0) {
    found.state = evidence_state::wrong;
    found.message = fmt::format(
        "GPU evidence is WRONG: {} of {} cases have digests that are not the reference's, the "
        "first "
        "is {} ({})",
        wrong, e.cases.size(), first_wrong, what);
  } else if (e.sources != sources) {
    found.state = evidence_state::stale;
    found.message = fmt::format(
        "GPU evidence is stale: the kernels' sources or compiler flags have changed since ({})",
        what);
  } else if (changed != 0) {
    found.state = evidence_state::stale;
    found.message = fmt::format(
        "GPU evidence is stale: {} cases are new, gone or changed since ({})", changed, what);
  } else {
    found.message = fmt::format("GPU evidence is verified: {}", what);
  }
  return found;
}

}  // namespace kvcts
