#include "conformance/cli/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "common/printable.h"
#include "conformance/cli/interrupt.h"
#include "conformance/runner/run.h"

namespace kvcts {

void print_failure(const case_result& c, const side_names& sides, std::FILE* to) {
  if (c.what == outcome::failed) {
    fmt::print(
        to, "FAILED {}/{} ({}){}\n", printable(c.kernel), printable(c.name), printable(c.source),
        c.bytes_different == 0 ? "" : fmt::format(": {} bytes differ", grouped(c.bytes_different)));
  } else {
    fmt::print(to, "{} {}/{} ({})\n", c.what == outcome::timed_out ? "TIMED OUT" : "CRASHED",
               printable(c.kernel), printable(c.name), printable(c.source));
  }
  if (!c.message.empty()) fmt::print(to, "  {}\n", printable(c.message));
  for (const difference& d : c.places) {
    fmt::print(to, "  {}: {}: {} {}, {} {}\n", printable(d.argument), printable(d.place),
               sides.expected, printable(d.expected), sides.got, printable(d.got));
  }
  if (!c.flags.empty())
    fmt::print(to, "  flags: {}\n", printable(fmt::format("{}", fmt::join(c.flags, ", "))));
  // `verify` has no command for one case.
  const bool alone = c.replay.rfind("kvcts run", 0) == 0;
  if (!c.replay.empty())
    fmt::print(to, "  again{}: {}\n", alone ? " alone" : "", printable(c.replay));
}

namespace {

// Which failures of one kernel are printed: the smallest cases, and of those that crashed or timed
// out (no bytes were compared) no more than half while others are left.
std::vector<const case_result*> failures_to_show(std::vector<const case_result*> failures,
                                                 std::size_t most) {
  std::stable_sort(failures.begin(), failures.end(), [](const auto* a, const auto* b) {
    return a->bytes_compared < b->bytes_compared;
  });
  const auto broke = [](const case_result* c) { return c->what != outcome::failed; };
  const auto middle = std::stable_partition(failures.begin(), failures.end(), broke);
  const auto broken = static_cast<std::size_t>(middle - failures.begin());
  const std::size_t others = failures.size() - broken;
  const std::size_t of_broken = std::min(broken, std::max(most - std::min(most, others), most / 2));
  std::vector<const case_result*> chosen(failures.begin(),
                                         failures.begin() + static_cast<std::ptrdiff_t>(of_broken));
  const std::size_t of_others = std::min(others, most - of_broken);
  chosen.insert(chosen.end(), middle, middle + static_cast<std::ptrdiff_t>(of_others));
  return chosen;
}

}  // namespace

void print_result(const run_result& result, const side_names& sides, std::FILE* to) {
  constexpr std::size_t most_failures = 10, least_of_a_kernel = 2;
  struct row {
    std::size_t cases = 0, passed = 0, failed = 0, crashed = 0, timed_out = 0, unsupported = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, row> rows;
  std::map<std::string, std::vector<const case_result*>> failures;
  for (const case_result& c : result.cases) {
    row& r = rows[c.kernel];
    ++r.cases;
    r.bytes += c.bytes_compared;
    r.passed += c.what == outcome::passed;
    r.failed += c.what == outcome::failed;
    r.unsupported += c.what == outcome::unsupported;
    r.crashed += c.what == outcome::crashed;
    r.timed_out += c.what == outcome::timed_out;
    if (c.what == outcome::passed || c.what == outcome::unsupported) continue;
    failures[c.kernel].push_back(&c);
  }
  for (const auto& [kernel, all] : failures) {
    const std::size_t most = std::max(most_failures / failures.size(), least_of_a_kernel);
    for (const case_result* c : failures_to_show(all, most)) print_failure(*c, sides, to);
    if (all.size() > most) {
      fmt::print(to, "... and {} more cases of {}: see the report (--report DIR)\n",
                 all.size() - most, printable(kernel));
    }
  }
  fmt::print(to, "candidate {} ({}), profile {}, level {}, seed {}\n", printable(result.candidate),
             printable(result.candidate_version), printable(result.profile),
             printable(result.level), result.seed);
  int conform = 0, differ = 0, not_claimed = 0;
  std::vector<std::string> unclaimed;
  for (const auto& [kernel, r] : rows) {
    const bool all_unclaimed = r.unsupported == r.cases;
    const bool good = r.passed + r.unsupported == r.cases;
    not_claimed += all_unclaimed;
    conform += good && !all_unclaimed;
    differ += !good;
    if (all_unclaimed) {
      unclaimed.push_back(printable(kernel));
      continue;
    }
    fmt::print(to, "  {:<37} {:>5} cases  {:>5} passed  {:>4} failed", printable(kernel), r.cases,
               r.passed, r.failed);
    if (r.crashed != 0) fmt::print(to, "  {} crashed", r.crashed);
    if (r.timed_out != 0) fmt::print(to, "  {} timed out", r.timed_out);
    if (r.unsupported != 0) fmt::print(to, "  {} not claimed", r.unsupported);
    fmt::print(to, "  {:>14} bytes\n", grouped(r.bytes));
  }
  if (!unclaimed.empty()) fmt::print(to, "  not claimed: {}\n", fmt::join(unclaimed, ", "));
  if (differ != 0 || not_claimed != 0) {
    fmt::print(to, "kernels: {} conform, {} do not, {} not claimed\n", conform, differ,
               not_claimed);
  }
  for (const diagnosis& d : result.diagnoses) {
    for (const std::string& line : text_of(d)) fmt::print(to, "{}\n", printable(line));
  }
  if (result.adequacy) {
    fmt::print(to, "adequacy of the suite: {} of {} pairs of a fault and a kernel caught\n",
               result.adequacy->caught, result.adequacy->pairs);
  }
  for (const std::string& notice : result.notices) {
    fmt::print(to, "{}\n", printable(notice));
  }
  fmt::print(to, "verdict: {}\n", printable(result.verdict));
}

namespace {

bool on_terminal() {
  static const bool is = isatty(STDERR_FILENO) != 0;
  return is;
}

}  // namespace

void show_progress(const std::string& what, std::uint64_t cases, std::uint64_t all,
                   std::uint64_t bytes) {
  using clock = std::chrono::steady_clock;
  static clock::time_point last;
  if (!on_terminal() || clock::now() - last < std::chrono::milliseconds(100)) return;
  last = clock::now();
  fmt::print(stderr, "\r{}: {}/{} cases, {} MiB\033[K", what, cases, all, grouped(bytes >> 20));
  std::fflush(stderr);
}

void clear_progress() {
  if (!on_terminal()) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

std::function<void(std::size_t, std::size_t)> progress_on_terminal() {
  return [](std::size_t done, std::size_t all) {
    throw_if_interrupted();
    if (!on_terminal()) return;
    fmt::print(stderr, "\r{}/{} cases{}", done, all, done == all ? "\r\033[K" : "");
    std::fflush(stderr);
  };
}

}  // namespace kvcts
