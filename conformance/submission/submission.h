// A submission: one archive that a vendor hands over and anybody can check without running
// anything (docs/acceptance.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "conformance/runner/run.h"
#include "reports/archive.h"

namespace kvcts {

// What the suite holds, whoever is examined: names and digests of every case, in the run's order.
struct manifest_case {
  std::string kernel, name, source, profile, provenance;
  std::vector<std::string> flags;
  std::string inputs;                           // digest of names, flags, attributes and inputs
  std::string digest;                           // the same, and of the expected buffers
  std::map<std::string, std::string> expected;  // argument -> SHA-256
};
struct suite_manifest {
  std::string profile, level, suite_digest;
  std::uint64_t seed = 0;
  std::vector<manifest_case> cases;
};
// Computes every case with the reference.
suite_manifest manifest_of(const std::vector<planned_case>& plan, const run_options& options);
std::string manifest_json(const suite_manifest& m);
std::string digest_of(const suite_manifest& m);
// Of the acceptance run. Changes with every case that comes, goes or expects other bytes: kvcts
// accept --submission names the new one where this one is out of date.
constexpr std::string_view acceptance_manifest =
    "c6bf91eeca0ef557fa00d343b84d3acd97a93cc1fef9bd588733ed9897372e12";

// A failing case that somebody answers for.
struct waiver {
  std::string kernel;  // its name
  std::string cases;   // shell pattern of case names
  std::string reason, by;
  std::string until;  // the last day that it holds: "2027-06-30"
};
// Throws input_error: not the form of docs/acceptance.md, an unknown kernel, an end before `today`.
std::vector<waiver> read_waivers(const std::string& path, const std::string& today);
std::vector<waiver> waivers_from(const std::string& text, const std::string& today);
// Throws input_error where a waiver matches no case.
void check_waivers(const std::vector<waiver>& waivers, const std::vector<planned_case>& plan);
void check_waivers(const std::vector<waiver>& waivers, const suite_manifest& suite);
// Takes the waived cases out of the judgement: verdict, notices. Gives the exit status. Only cases
// that ran to their end and wrote other bytes can be waived, and under `require_full` nothing can.
int apply_waivers(const std::vector<waiver>& waivers, bool require_full, run_result& result);

// Today by UTC, "2027-06-30".
std::string today();

// A run's result as any machine would have it: no times, host, compiler or folders.
run_result reproducible(run_result result, const candidate& subject);

// The members. `measured` is the run's result, `reduced` what reproducible() made of it, `log` the
// text that the run printed of `reduced`.
std::vector<archive_member> submission_of(const run_result& measured, const run_result& reduced,
                                          const suite_manifest& manifest,
                                          const std::vector<waiver>& waivers, std::string log);
// The same with SHA256SUMS made anew.
std::vector<archive_member> with_sums(std::vector<archive_member> members);
// SHA-256 of all members but environment.json and SHA256SUMS: equal for two runs of one candidate.
std::string reproducible_digest(const std::vector<archive_member>& members);

struct submission_check {
  bool holds = false;
  std::string problem;  // one line, where it does not hold
  std::string candidate, version, candidate_digest, profile, suite_digest, verdict;
  int suite_version = 0;
  std::vector<waiver> waivers;
  std::size_t members = 0, cases = 0;
  std::string archive_digest, members_digest;  // SHA-256, and reproducible_digest()
  bool conforms() const { return holds && verdict.rfind("conforms", 0) == 0; }
};
// Throws input_error where the file cannot be read or is no submission at all.
std::string read_submission(const std::string& path);
// `manifest`: the digest that the suite's manifest must have. `printed`: what a run prints of its
// result, which log.txt ends with.
submission_check check_submission(std::string_view archive, const std::string& today,
                                  const std::function<std::string(const run_result&)>& printed,
                                  std::string_view manifest = acceptance_manifest);

}  // namespace kvcts
