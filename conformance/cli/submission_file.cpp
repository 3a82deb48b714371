// kvcts accept --submission, kvcts report check.
#include "conformance/cli/submission_file.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "common/printable.h"
#include "conformance/cli/commands.h"
#include "conformance/cli/text.h"
#include "reports/archive.h"
#include "reports/reports.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw input_error(
      fmt::format("--submission {}: {}; name a file in a folder that can be written", path, why));
}

void write_bytes(const replaced_file& file, const std::string& bytes) {
  const std::string why = file.write(bytes);
  if (!why.empty()) refuse(file.path(), "cannot be written (" + why + ")");
}

// What print_result() prints.
std::string printed(const run_result& result) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* to = open_memstream(&text, &bytes);
  if (to == nullptr) throw std::bad_alloc();
  print_result(result, {}, to);
  const bool complete = std::fclose(to) == 0;
  const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
  if (!complete) throw std::bad_alloc();
  return {text, bytes};
}

void print_check(const std::string& path, const submission_check& check) {
  if (!check.holds) {
    fmt::print("{} does not hold: {}\n", printable(path), printable(check.problem));
    return;
  }
  fmt::print("{} holds: {} members, {} cases\n", printable(path), check.members, check.cases);
  fmt::print("candidate {} ({}), SHA-256 {}\n", printable(check.candidate),
             printable(check.version), printable(check.candidate_digest));
  fmt::print("suite version {}, profile {}, digest {}\n", check.suite_version,
             printable(check.profile), printable(check.suite_digest));
  fmt::print("SHA-256 of the archive: {}\n", check.archive_digest);
  fmt::print("SHA-256 without environment.json: {}\n", check.members_digest);
  for (const waiver& w : check.waivers) {
    fmt::print("waiver of {}/{}: {} ({}, until {})\n", printable(w.kernel), printable(w.cases),
               printable(w.reason), printable(w.by), printable(w.until));
  }
  fmt::print("verdict: {}\n", printable(check.verdict));
}

}  // namespace

submission_file::submission_file(const std::string& path) {
  if (path.empty()) return;
  if (fs::is_directory(path)) refuse(path, "is a folder");
  file_.emplace(path);
  write_bytes(*file_, "");
}

void submission_file::log(const std::string& line) {
  fmt::print("{}", line);
  log_ += line;
}

void submission_file::write(const run_result& result, const candidate& subject,
                            const std::vector<planned_case>& plan, const run_options& options,
                            const std::vector<waiver>& waivers) {
  if (!file_) return;
  const std::string& path = file_->path();
  const suite_manifest manifest = manifest_of(plan, options);
  if (digest_of(manifest) != acceptance_manifest) {
    throw input_error(
        fmt::format("--submission {}: the suite's manifest is {}, this version's is {}: take the "
                    "vector files of this version",
                    path, digest_of(manifest), acceptance_manifest));
  }
  const run_result reduced = reproducible(result, subject);
  // Printed as whoever reads report.json sees it.
  const run_result read = parse_report(report_json(reduced), "report.json");
  const std::string archive =
      write_archive(submission_of(result, reduced, manifest, waivers, log_ + printed(read)));
  const submission_check check = check_submission(archive, today(), printed);
  if (!check.holds) {
    throw input_error(fmt::format("--submission {}: not written, since it would not hold: {}", path,
                                  check.problem));
  }
  write_bytes(*file_, archive);
  const std::string why = file_->put();
  if (!why.empty()) refuse(path, why);
  fmt::print("submission: {}\n  SHA-256 {}\n  without environment.json {}\n",
             fs::absolute(path).lexically_normal().string(), check.archive_digest,
             check.members_digest);
}

int report_check_command(const std::string& file, bool require_full) {
  const submission_check check = check_submission(read_submission(file), today(), printed);
  print_check(file, check);
  if (!check.conforms()) return 1;
  return require_full && check.verdict.rfind("conforms:", 0) != 0 ? 1 : 0;
}

}  // namespace kvcts
