// kvcts run, kvcts accept.
#include "conformance/runner/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "common/patterns.h"
#include "conformance/cli/commands.h"
#include "conformance/cli/interrupt.h"
#include "conformance/cli/report_folder.h"
#include "conformance/cli/submission_file.h"
#include "conformance/cli/text.h"
#include "conformance/faults/adequacy.h"
#include "conformance/runner/bench_file.h"
#include "conformance/runner/costs.h"
#include "conformance/runner/evidence.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/vector_check.h"
#include "reports/checkpoint.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const fs::path& folder, const std::string& extension) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == extension) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> vector_files_in(const fs::path& folder) {
  std::vector<std::string> found = files_in(folder, ".h5");
  found.erase(std::remove_if(found.begin(), found.end(),
                             [](const std::string& f) { return schema_of(f) != "kvcts-vectors"; }),
              found.end());
  return found;
}

struct evidence_summary {
  bool any = false, wrong = false, stale = false;
  std::vector<std::string> notices;
};

// Of every recorded run in reports/evidence.
evidence_summary check_recorded_evidence(const fs::path& source, int threads) {
  evidence_summary summary;
  const auto file_of = [&](const std::string& name) -> std::optional<std::string> {
    for (const char* folder : {"vectors/captured", "vectors/golden"}) {
      const fs::path path = source / folder / name;
      if (fs::exists(path)) return path.string();
    }
    return std::nullopt;
  };
  for (const std::string& file : files_in(source / "reports" / "evidence", ".json")) {
    if (!is_evidence_file(file)) continue;
    const evidence_check check = check_evidence(read_evidence(file), threads, file_of);
    summary.any = true;
    summary.wrong = summary.wrong || check.state == evidence_state::wrong;
    summary.stale = summary.stale || check.state == evidence_state::stale;
    summary.notices.push_back(
        fmt::format("{} [{}]", check.message, fs::path(file).filename().string()));
  }
  if (!summary.any) summary.notices.emplace_back("GPU evidence: none is recorded");
  return summary;
}

// 1 where evidence makes a run fail that passed else.
int apply(const evidence_summary& evidence, bool required, run_result& result, int status) {
  result.notices.insert(result.notices.end(), evidence.notices.begin(), evidence.notices.end());
  const bool fails = evidence.wrong || (required && (evidence.stale || !evidence.any));
  if (!fails) return status;
  if (status == 0) result.verdict = "does not conform: the GPU evidence is wrong, stale or missing";
  return std::max(status, 1);
}

void deal_out(const candidates_on_devices& candidates, run_options& options) {
  for (std::size_t i = 1; i < candidates.all.size(); ++i) {
    options.on_other_devices.push_back(candidates.all[i].get());
  }
}

// What makes a run this one: another build, candidate, plan or shard gives other results.
checkpoint_identity identity_of(const run_arguments& arguments, const run_options& options,
                                const candidate& subject, const shard& part,
                                const std::string& plan) {
  checkpoint_identity whose = {
      {"candidate", fmt::format("{} ({})", subject.name(), subject.version())},
      {"profile", std::string(name_of(options.rules))},
      {"level", std::string(name_of(options.up_to))},
      {"seed", std::to_string(options.seed)},
      {"shard", text_of(part)},
      {"timeout", fmt::format("{}", arguments.timeout)},
      {"program", program_digest()},
      {"suite", plan},
  };
  for (const auto& [what, value] : subject.about()) whose.emplace_back(what, value);
  return whose;
}

// Evidence is of a whole run.
void refuse_evidence_of_a_shard(const run_arguments& arguments, const shard& part) {
  if (part.is_whole()) return;
  for (const auto& [given, option] :
       {std::pair(!arguments.evidence.empty(), "--evidence"),
        std::pair(arguments.require_evidence, "--require-evidence")}) {
    if (!given) continue;
    throw input_error(fmt::format("{} needs a whole run, not shard {}: leave one of the two out",
                                  option, text_of(part)));
  }
}

// Faults tried on the reference: it tells of the suite's cases, not of the candidate.
adequacy_score score_of_suite(int threads) {
  adequacy_options options;
  options.threads = threads;
  const adequacy found = try_faults(options);
  std::set<std::string> survivors;
  for (const fault_trial& t : found.trials) {
    if (t.catches.empty()) survivors.insert(fmt::format("{}: {}", t.kernel, t.what->name));
  }
  adequacy_score score;
  score.faults = found.faults();
  score.pairs = found.pairs();
  score.caught = score.pairs - survivors.size();
  score.survivors.assign(survivors.begin(), survivors.end());
  return score;
}

// What `--speed` names; else, of candidate cuda, what was recorded on a device.
std::optional<speed_table> speed_of(const accept_arguments& arguments, const fs::path& source) {
  if (!arguments.speed.empty()) return read_bench(arguments.speed);
  if (arguments.candidate != "cuda") return std::nullopt;
  constexpr const char* recorded = "reports/evidence/bench-h200.json";
  if (!fs::exists(source / recorded)) return std::nullopt;
  speed_table table = read_bench((source / recorded).string());
  table.source = fmt::format("{}, recorded earlier on {}", recorded, table.device);
  return table;
}

}  // namespace

int run_command(const run_arguments& arguments) {
  const interrupt_guard signals;
  const shard part = shard_of_process(arguments.shard);
  refuse_evidence_of_a_shard(arguments, part);
  const kernel_filter kernels(arguments.suite.kernels);
  run_options options;
  options.seed = arguments.suite.seed;
  options.threads = arguments.threads;
  options.repeat = arguments.repeat;
  options.up_to = level_from_name(arguments.suite.level.value_or("acceptance"));
  if (arguments.suite.profile) options.rules = profile_from_name(*arguments.suite.profile);
  const candidates_on_devices candidates =
      make_candidates(arguments.candidate, arguments.threads, arguments.timeout, arguments.devices);
  candidate* const subject = candidates.all.front().get();
  deal_out(candidates, options);
  std::optional<speed_table> speed;
  if (!arguments.speed.empty()) speed = read_bench(arguments.speed);
  const report_folder report(arguments.report);
  if (!arguments.evidence.empty()) check_evidence_path(arguments.evidence);

  std::vector<planned_case> plan;
  // Files alone, unless a level is asked for too.
  if (arguments.vectors.empty() || arguments.suite.level) {
    plan = plan_built_in(kernels, options.up_to, options.seed, options.rules);
  }
  for (const std::string& file : arguments.vectors) {
    probe_vectors(file);
    std::vector<planned_case> more = plan_file(file, kernels);
    if (!more.empty()) {
      const profile of_file = more.front().rules;
      if (!arguments.suite.profile && plan.empty()) options.rules = of_file;
      if (of_file != options.rules) {
        throw input_error(
            fmt::format("{} is of profile {}, the run of profile {}: use --profile {}", file,
                        name_of(of_file), name_of(options.rules), name_of(of_file)));
      }
    }
    std::move(more.begin(), more.end(), std::back_inserter(plan));
  }
  if (!arguments.only_case.empty()) {
    plan.erase(std::remove_if(plan.begin(), plan.end(),
                              [&](const planned_case& c) {
                                return !matches_pattern(arguments.only_case, c.name);
                              }),
               plan.end());
  }
  if (plan.empty()) {
    throw input_error(
        arguments.only_case.empty()
            ? "no case is chosen: see kvcts list"
            : fmt::format("no case is named '{}' at this level: see --level", arguments.only_case));
  }

  const std::uint64_t cases_of_all = plan.size();
  const std::string digest =
      part.is_whole() && arguments.checkpoint.empty() ? "" : plan_digest(plan, options);
  keep_shard(plan, part);
  std::optional<checkpoint> kept;
  if (!arguments.checkpoint.empty()) {
    kept.emplace(arguments.checkpoint, identity_of(arguments, options, *subject, part, digest));
    if (kept->size() != 0) {
      fmt::print(stderr, "kvcts: {} of {} cases are in {} already\n", kept->size(), plan.size(),
                 arguments.checkpoint);
    }
    options.recall = [&](const planned_case& c) {
      return kept->find(c.position, c.kernel, c.name);
    };
    options.record = [&](const case_result& c) { kept->add(c); };
  }
  options.progress = progress_on_terminal();
  run_result result = run_suite(plan, *subject, options);
  if (!candidates.devices.empty()) result.environment["devices"] = candidates.devices;
  if (!part.is_whole()) {
    result.shard = part.index;
    result.shards = part.count;
    result.cases_of_all = cases_of_all;
    result.plan_digest = digest;
    result.program_digest = program_digest();
    result.verdict = verdict_of(result);
  }
  result.speed = std::move(speed);
  int status = result.exit_status(arguments.require_full);
  if (arguments.require_evidence) {
    status =
        apply(check_recorded_evidence(KVCTS_SOURCE_DIR, arguments.threads), true, result, status);
  }
  print_result(result);
  if (!arguments.evidence.empty()) {
    const bool all_passed =
        std::all_of(result.cases.begin(), result.cases.end(),
                    [](const case_result& c) { return c.what == outcome::passed; });
    if (all_passed) {
      write_evidence(arguments.evidence, evidence_of(result, plan));
      fmt::print("evidence: {}\n", arguments.evidence);
    } else {
      fmt::print("evidence: not written, since not every case passed\n");
    }
  }
  report.write(result);
  return status;
}

int accept_command(const accept_arguments& arguments) {
  const interrupt_guard signals;
  const fs::path source = arguments.source.empty() ? KVCTS_SOURCE_DIR : arguments.source;
  const kernel_filter kernels(implemented_kernels(","));
  const std::vector<std::string> captured = vector_files_in(source / "vectors" / "captured");
  const std::vector<std::string> golden = vector_files_in(source / "vectors" / "golden");
  for (const auto& [files, folder] :
       {std::pair(&captured, "captured"), std::pair(&golden, "golden")}) {
    if (files->empty()) {
      throw input_error(fmt::format("{}: holds no vector file, run in a whole checkout",
                                    (source / "vectors" / folder).string()));
    }
  }
  std::optional<speed_table> speed = speed_of(arguments, source);
  std::vector<waiver> waivers;
  if (!arguments.waivers.empty()) waivers = read_waivers(arguments.waivers, today());
  const report_folder report(arguments.report);
  submission_file submission(arguments.submission);

  // First the oracle itself: what hardware wrote.
  bool oracle_holds = true;
  for (const std::string& file : captured) {
    const vector_check check = check_vectors(file, kernels, arguments.threads);
    for (const case_result& c : check.failures) print_failure(c);
    std::uint64_t cases = 0, compared = 0, different = 0;
    for (const vector_check::row& r : check.rows) {
      cases += r.cases;
      compared += r.compared;
      different += r.different;
    }
    submission.log(fmt::format("reference against {}: {} cases, {} bytes compared, {} differ\n",
                               fs::path(file).filename().string(), cases, grouped(compared),
                               grouped(different)));
    oracle_holds = oracle_holds && different == 0;
  }

  run_options options;
  options.threads = arguments.threads;
  options.progress = progress_on_terminal();
  const candidates_on_devices candidates =
      make_candidates(arguments.candidate, arguments.threads, arguments.timeout, arguments.devices);
  candidate* const subject = candidates.all.front().get();
  deal_out(candidates, options);
  std::vector<planned_case> plan =
      plan_built_in(kernels, options.up_to, options.seed, options.rules);
  for (const std::vector<std::string>* files : {&captured, &golden}) {
    for (const std::string& file : *files) {
      std::vector<planned_case> more = plan_file(file, kernels);
      std::move(more.begin(), more.end(), std::back_inserter(plan));
    }
  }
  check_waivers(waivers, plan);
  run_result result = run_suite(plan, *subject, options);
  if (!candidates.devices.empty()) result.environment["devices"] = candidates.devices;
  int status = apply_waivers(waivers, arguments.require_full, result);
  if (!oracle_holds) {
    result.verdict = "does not conform: the reference differs from the captured vectors";
    result.notices.push_back("the reference differs from the captured vectors");
    status = std::max(status, 1);
  }
  status = apply(check_recorded_evidence(source, arguments.threads), arguments.require_evidence,
                 result, status);
  result.speed = std::move(speed);
  result.adequacy = score_of_suite(arguments.threads);
  print_result(result);
  report.write(result);
  submission.write(result, *subject, plan, options, waivers);
  return status;
}

}  // namespace kvcts
