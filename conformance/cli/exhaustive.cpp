// kvcts exhaustive.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "conformance/cli/commands.h"
#include "conformance/cli/interrupt.h"
#include "conformance/cli/report_folder.h"
#include "conformance/cli/text.h"
#include "conformance/exhaustive/campaign.h"
#include "conformance/runner/costs.h"
#include "conformance/runner/run.h"
#include "fuzz/shapes.h"
#include "vectors/sha256.h"

namespace kvcts {
namespace {

using steady = std::chrono::steady_clock;

std::vector<sweep> all_sweeps(const std::string& source, candidate& subject, profile p) {
  std::vector<sweep> all = format_sweeps(format_functions(rules_for(p)));
  for (std::vector<sweep>& more :
       std::vector<std::vector<sweep>>{instruction_sweeps(source + "/vectors/captured"),
                                       block_sweeps(subject, p), shape_sweeps(subject, p)}) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

// Sweeps whose names match one of the patterns.
std::vector<sweep> chosen(std::vector<sweep> all, const std::string& patterns) {
  const name_patterns wanted(patterns);
  std::vector<std::string_view> names;
  for (const sweep& s : all) names.push_back(s.name);
  const std::optional<std::string> unknown = wanted.without_match(names);
  if (unknown) {
    throw input_error(fmt::format(
        "no sweep of what this candidate claims is named '{}': see kvcts exhaustive --plan",
        *unknown));
  }
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const sweep& s) { return !wanted.matches(s.name); }),
            all.end());
  return all;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::lround(seconds));
  if (whole < 60) return fmt::format("{:.1f} s", seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

// Of what a campaign consists of: the same for all its shards.
std::string digest_of_work(const std::vector<sweep>& sweeps) {
  sha256_stream digest;
  for (const sweep& s : sweeps) {
    const std::string line = fmt::format("{} {} {}\n", s.name, s.inputs, s.piece);
    digest.add(line.data(), line.size());
  }
  return digest.finish();
}

// What is left of the work, in nanoseconds of one thread by the rates that were measured.
class clock_of_work {
 public:
  clock_of_work(const std::vector<sweep>& sweeps, const std::vector<double>& rates,
                const std::vector<sweep_piece>& pieces, const sweep_checkpoint& checkpoint)
      : sweeps_(sweeps), rates_(rates), checkpoint_(checkpoint) {
    for (const sweep_piece& p : pieces) {
      all_ += cost(p);
      if (known(p)) {
        done_ += cost(p);
        ++found_;
      }
    }
    kept_ = done_;
  }

  bool known(const sweep_piece& p) const {
    return checkpoint_.find(sweeps_[p.sweep].name, p.piece) != nullptr;
  }
  std::size_t found() const { return found_; }
  double seconds_left(int threads) const { return (all_ - done_) / 1e9 / threads; }

  // A line on a terminal's standard error.
  void show(const sweep_piece& p) {
    if (!known(p)) done_ += cost(p);
    if (isatty(STDERR_FILENO) == 0 || done_ <= kept_) return;
    const double run = std::chrono::duration<double>(steady::now() - start_).count();
    fmt::print(stderr, "\r{:.1f}% {}, {} left\033[K", 100 * done_ / all_, sweeps_[p.sweep].name,
               duration(run * (all_ - done_) / (done_ - kept_)));
    std::fflush(stderr);
  }

 private:
  double cost(const sweep_piece& p) const {
    const sweep& s = sweeps_[p.sweep];
    return static_cast<double>(std::min(s.piece, s.inputs - p.piece * s.piece)) * rates_[p.sweep];
  }

  const std::vector<sweep>& sweeps_;
  const std::vector<double>& rates_;
  const sweep_checkpoint& checkpoint_;
  double all_ = 0, done_ = 0, kept_ = 0;
  std::size_t found_ = 0;
  steady::time_point start_ = steady::now();
};

void print_plan(const std::vector<sweep>& sweeps, const std::vector<double>& rates,
                const std::vector<sweep_piece>& pieces, int threads) {
  fmt::print("  {:<43} {:>14} {:>7} {:>11} {:>12}\n", "sweep", "inputs", "pieces", "ns/input",
             "time");
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    std::uint64_t inputs = 0, count = 0;
    for (const sweep_piece& p : pieces) {
      if (p.sweep != i) continue;
      ++count;
      inputs += std::min(sweeps[i].piece, sweeps[i].inputs - p.piece * sweeps[i].piece);
    }
    fmt::print("  {:<43} {:>14} {:>7} {:>11.1f} {:>12}\n", sweeps[i].name, grouped(inputs), count,
               rates[i], duration(static_cast<double>(inputs) * rates[i] / 1e9 / threads));
  }
}

void print_sweep(const sweep_result& s) {
  clear_progress();
  fmt::print("  {:<43} {:>14} inputs  {:>4} mismatches  {:>12}\n", s.name, grouped(s.inputs),
             grouped(s.mismatches), duration(s.seconds));
  if (s.mismatches != 0) fmt::print("    first: {} ({})\n", s.first_mismatch, s.text);
  std::fflush(stdout);
}

}  // namespace

int exhaustive_command(const exhaustive_arguments& arguments) {
  const interrupt_guard signals;
  const profile rules = profile_from_name(arguments.profile);
  const int threads = thread_count(arguments.threads);
  // Pieces go to threads: a call has one.
  const std::unique_ptr<candidate> subject =
      make_candidate(arguments.candidate, 1, arguments.timeout);
  const std::string source = arguments.source.empty() ? KVCTS_SOURCE_DIR : arguments.source;
  const std::vector<sweep> sweeps = chosen(all_sweeps(source, *subject, rules), arguments.sweeps);
  const shard part = shard_of_process(arguments.shard);
  const std::vector<sweep_piece> pieces = pieces_of(sweeps, part);
  const report_folder report(arguments.plan ? "" : arguments.report);
  sweep_checkpoint checkpoint(
      arguments.plan && !std::filesystem::exists(arguments.checkpoint) ? "" : arguments.checkpoint,
      fmt::format("{} {} {} {}", program_digest(), subject->name(), subject->version(),
                  name_of(rules)));

  std::vector<double> rates;
  for (const sweep& s : sweeps) {
    throw_if_interrupted();
    rates.push_back(measured_rate(s));
  }
  clock_of_work work(sweeps, rates, pieces, checkpoint);
  fmt::print("candidate {} ({}), profile {}, {} threads{}: {} sweeps, {} pieces, about {}\n",
             subject->name(), subject->version(), name_of(rules), threads,
             part.is_whole() ? "" : ", shard " + text_of(part), sweeps.size(), pieces.size(),
             duration(work.seconds_left(threads)));
  if (work.found() != 0) {
    fmt::print("{} pieces are finished in {}\n", work.found(), arguments.checkpoint);
  }
  if (arguments.plan) {
    print_plan(sweeps, rates, pieces, threads);
    return 0;
  }
  std::fflush(stdout);

  campaign_options options;
  options.threads = threads;
  options.part = part;
  options.progress = [&](const sweep_piece& p) {
    throw_if_interrupted();
    work.show(p);
  };
  options.finished = print_sweep;
  const steady::time_point start = steady::now();
  run_result result;
  result.sweeps = run_campaign(sweeps, checkpoint, options);
  clear_progress();
  result.candidate = subject->name();
  result.candidate_version = subject->version();
  result.profile = name_of(rules);
  result.level = name_of(level::exhaustive);
  result.environment = environment_here();
  result.environment.merge(subject->about());
  if (!part.is_whole()) {
    result.shard = part.index;
    result.shards = part.count;
    result.plan_digest = digest_of_work(sweeps);
    result.program_digest = program_digest();
  }
  result.suite_digest = digest_of_work(sweeps);
  result.verdict = verdict_of(result);
  fmt::print("verdict: {}, in {}\n", result.verdict,
             duration(std::chrono::duration<double>(steady::now() - start).count()));
  report.write(result);
  return result.exit_status(false);
}

}  // namespace kvcts
