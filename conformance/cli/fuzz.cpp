// kvcts fuzz.
#include "fuzz/fuzz.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "conformance/cli/commands.h"
#include "conformance/cli/fuzz_report.h"
#include "conformance/cli/interrupt.h"
#include "conformance/cli/report_folder.h"
#include "conformance/cli/text.h"
#include "conformance/runner/run.h"
#include "conformance/runner/shard.h"

namespace kvcts {
namespace {

bool differs_alike(const case_result& a, const case_result& b) {
  if (a.what != b.what || a.bytes_different != b.bytes_different) return false;
  if (a.places.size() != b.places.size()) return false;
  for (std::size_t i = 0; i < a.places.size(); ++i) {
    if (a.places[i].place != b.places[i].place || a.places[i].got != b.places[i].got) return false;
  }
  return true;
}

// Runs the saved file as the printed command does.
void print_replay(const fuzz_failure& f, candidate& subject, const run_options& options) {
  const run_result again = replay(f, subject, options);
  case_result one = again.cases.at(0);
  if (one.what == outcome::passed) {
    print_failure(f.result);
    fmt::print("  the saved file passes alone: an earlier call left state behind [{}]\n", f.file);
    return;
  }
  print_failure(one);
  if (!differs_alike(one, f.result)) fmt::print("  (run again, it failed in another way)\n");
  for (const diagnosis& d : again.diagnoses) {
    for (const std::string& line : text_of(d)) fmt::print("  {}\n", line);
  }
}

std::string why_of(const fuzz_failure& f) {
  if (f.result.what == outcome::crashed) return "the candidate crashed";
  if (f.result.what == outcome::timed_out) return "the candidate timed out";
  return f.text.empty() ? "bytes are not the reference's" : "it does not hold that " + f.text;
}

void print_fuzz_failure(const fuzz_failure& f, candidate& subject, const run_options& options) {
  fmt::print("case {} of {}, profile {}: {}\n", f.number, f.kernel, name_of(f.rules), why_of(f));
  std::string shapes;
  for (const buffer& b : f.smallest.inputs) {
    shapes +=
        fmt::format("{}{} [{}]", shapes.empty() ? "" : ", ", b.name, fmt::join(b.at.shape, ", "));
  }
  fmt::print("  shrunk in {} trials{} to {}\n", f.trials,
             f.shrunk_fully ? "" : " (that ended it before it was done)", shapes);
  if (f.result.what == outcome::passed) {
    fmt::print("  every call has the reference's bytes: the reference breaks the rule too [{}]\n",
               f.file);
    return;
  }
  if (f.file.empty()) {
    print_failure(f.result);
    fmt::print("  not saved: {}\n", f.not_saved);
    return;
  }
  print_replay(f, subject, options);
}

}  // namespace

int fuzz_command(const fuzz_arguments& arguments) {
  const interrupt_guard signals;
  fuzz_options options;
  options.kernels = arguments.kernels;
  options.cases = arguments.cases;
  options.seconds = arguments.seconds;
  options.seed = arguments.seed;
  options.part = shard_of_process(arguments.shard);
  if (arguments.profile) options.profiles = {profile_from_name(*arguments.profile)};
  if (!arguments.json.empty()) check_fuzz_path(arguments.json);
  const report_folder place(arguments.save);  // refused before the first case, or taken away empty
  options.save = arguments.save;
  options.progress = [](std::uint64_t cases, std::size_t failures) {
    throw_if_interrupted();
    if (isatty(STDERR_FILENO) == 0 || cases % 16 != 0) return;
    fmt::print(stderr, "\r{} cases, {} failures\033[K", cases, failures);
  };
  const std::unique_ptr<candidate> subject =
      make_candidate(arguments.candidate, arguments.threads, arguments.timeout);
  run_options replay;
  replay.threads = arguments.threads;
  options.found = [&](const fuzz_failure& f) {
    clear_progress();
    print_fuzz_failure(f, *subject, replay);
    std::fflush(stdout);
  };
  const fuzz_report report = fuzz(*subject, options);
  clear_progress();
  for (const fuzz_report::rejection& r : report.rejected) {
    fmt::print("REJECTED {}: a fault of the generator, not of the candidate\n", r.text);
  }
  std::string profiles;
  for (const profile p : options.profiles) {
    profiles += fmt::format("{}{}", profiles.empty() ? "" : ", ", name_of(p));
  }
  fmt::print("candidate {} ({}), fuzz, profile {}, seed {}{}\n", subject->name(),
             subject->version(), profiles, arguments.seed,
             options.part.is_whole() ? "" : ", shard " + text_of(options.part));
  std::uint64_t bytes = 0, relations = 0;
  std::map<std::string, fuzz_report::row> kernels;  // in all profiles
  for (const auto& [of, row] : report.rows) {
    fuzz_report::row& all = kernels[of.first];
    all.cases += row.cases;
    all.relations += row.relations;
    all.bytes += row.bytes;
    bytes += row.bytes;
    relations += row.relations;
  }
  for (const auto& [kernel, row] : kernels) {
    fmt::print("  {:<37} {:>6} cases  {:>6} relations  {:>15} bytes\n", kernel, row.cases,
               row.relations, grouped(row.bytes));
  }
  if (!report.not_claimed.empty()) {
    fmt::print("  not claimed: {}\n", fmt::join(report.not_claimed, ", "));
  }
  fmt::print("cases: {}, digest {}\n", report.cases, report.digest());
  if (!arguments.json.empty()) write_fuzz(arguments.json, report, options, *subject);
  if (report.cases == 0 && !options.part.is_whole()) {
    fmt::print("verdict: no case is in this shard\n");
    return 0;
  }
  const int status = report.exit_status();
  if (!report.failures.empty()) {
    fmt::print("verdict: does not conform: {} of {} cases fail{}\n", report.failures.size(),
               report.cases,
               " (the first one of a kernel and profile is shrunk, the next not run)");
  } else if (status == 0) {
    fmt::print("verdict: nothing found: {} cases, {} relations, {} bytes compared, 0 differ\n",
               report.cases, relations, grouped(bytes));
  } else if (!report.rejected.empty()) {
    fmt::print("verdict: {} of {} cases break their contract: a fault of the generator\n",
               report.rejected.size(), report.cases);
  } else {
    fmt::print("verdict: nothing was examined\n");
  }
  return status;
}

}  // namespace kvcts
