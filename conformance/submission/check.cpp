// Whether a submission holds. The bytes come from outside: nothing in them is believed before it is
// computed again.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "common/printable.h"
#include "conformance/submission/parts.h"
#include "conformance/submission/submission.h"
#include "reports/archive.h"
#include "reports/reports.h"
#include "vectors/file.h"
#include "vectors/version.h"

namespace kvcts {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;

void require(bool holds, const std::string& what) {
  if (!holds) throw input_error(what);
}

std::string digest_of_text(std::string_view text) {
  return sha256(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

const std::string& content_of(const std::vector<archive_member>& members, std::string_view name) {
  for (const archive_member& m : members) {
    if (m.name == name) return m.content;
  }
  throw input_error(fmt::format("member {} is missing", name));
}

void check_names(const std::vector<archive_member>& members) {
  std::set<std::string> wanted;
  for (const archive_member& m : submission_of({}, {}, {}, {}, "")) wanted.insert(m.name);
  for (const archive_member& m : members) {
    require(wanted.count(m.name) != 0,
            fmt::format("member {} does not belong to a submission", m.name));
  }
  for (const std::string& name : wanted) content_of(members, name);
}

void check_sums(const std::vector<archive_member>& members) {
  const std::string& sums = content_of(members, parts::sums_name);
  for (const archive_member& m : members) {
    const std::string line = fmt::format("{}  {}\n", digest_of_text(m.content), m.name);
    require(m.name == parts::sums_name || sums.find(line) != std::string::npos,
            fmt::format("{}: its SHA-256 is not the one in {}", m.name, parts::sums_name));
  }
  require(sums == parts::sums_of(members),
          fmt::format("{}: it lists more than the members", parts::sums_name));
}

suite_manifest manifest_in(const std::vector<archive_member>& members, std::string_view digest) {
  const std::string& text = content_of(members, "manifest.json");
  suite_manifest m;
  std::string version;
  try {
    m = parts::manifest_from(text);
    version = nlohmann::json::parse(text).at("kvcts_version");
  } catch (const nlohmann::json::exception&) {
    throw input_error("manifest.json: is no manifest of a suite");
  }
  require(version == KVCTS_VERSION,
          fmt::format("kvcts {} wrote it, and this is {}: check it with that version", version,
                      KVCTS_VERSION));
  require(manifest_json(m) == text, "manifest.json: is not as the suite writes it");
  require(digest_of(m) == digest, "manifest.json: is not the acceptance suite of this version");
  return m;
}

run_result report_in(const std::vector<archive_member>& members) {
  run_result result = parse_report(content_of(members, "report.json"), "report.json");
  for (const archive_member& m : parts::report_members(result)) {
    require(content_of(members, m.name) == m.content,
            fmt::format("{}: is not what kvcts {} writes of these results", m.name, KVCTS_VERSION));
  }
  return result;
}

void check_case(const case_result& c, const manifest_case& m,
                const std::set<std::string>& kernels) {
  const std::string where = fmt::format("report.json: {}/{} ({})", m.kernel, m.name, m.source);
  require(c.kernel == m.kernel && c.name == m.name && c.source == m.source,
          where + " is missing or out of its place");
  require(c.flags == m.flags && c.provenance == m.provenance,
          where + " has other flags or another provenance than in manifest.json");
  require(kernels.count(c.kernel) != 0 || c.what == outcome::unsupported,
          where + ": the candidate does not claim the kernel, yet it ran");
  if (c.what == outcome::passed) {
    require(c.output_digests == m.expected, where + ": passed with other bytes than expected");
    const std::string of_nothing = digest_of_text("");  // outputs of no token
    const bool empty = std::all_of(m.expected.begin(), m.expected.end(),
                                   [&](const auto& one) { return one.second == of_nothing; });
    require(c.bytes_different == 0 && c.places.empty() && (empty || c.bytes_compared != 0),
            where + ": passed with bytes that differ or were not compared");
  }
}

void check_cases(const run_result& result, const suite_manifest& suite) {
  require(result.profile == suite.profile && result.level == suite.level &&
              result.seed == suite.seed && result.suite_digest == suite.suite_digest &&
              result.suite_version == suite_version,
          "report.json: is of another suite than manifest.json");
  require(result.shards == 1 && result.sweeps.empty(), "report.json: is of no acceptance run");
  if (const std::optional<adequacy_score>& score = result.adequacy) {
    const std::set<std::string> survivors(score->survivors.begin(), score->survivors.end());
    require(survivors.size() == score->survivors.size() &&
                score->caught + survivors.size() == score->pairs,
            "report.json: the adequacy's counts do not agree with what survives");
  }
  require(
      result.cases.size() == suite.cases.size(),
      fmt::format("report.json: holds {} cases of {}", result.cases.size(), suite.cases.size()));
  std::set<std::string> claimed, ran, all;
  const auto listed = result.environment.find("candidate kernels");
  require(listed != result.environment.end(), "report.json: the candidate's kernels are missing");
  std::istringstream names(listed->second);
  for (std::string name; std::getline(names, name, ',');) {
    claimed.insert(name.substr(name.find_first_not_of(' ')));
  }
  for (std::size_t i = 0; i < suite.cases.size(); ++i) {
    const case_result& c = result.cases[i];
    check_case(c, suite.cases[i], claimed);
    all.insert(c.kernel);
    if (c.what != outcome::unsupported) ran.insert(c.kernel);
  }
  require(result.kernels_total == static_cast<int>(all.size()) &&
              result.kernels_claimed == static_cast<int>(ran.size()),
          "report.json: the counts of kernels do not follow from its cases");
}

std::vector<waiver> waivers_in(const std::vector<archive_member>& members, const std::string& today,
                               const suite_manifest& suite) {
  try {
    std::vector<waiver> waivers = waivers_from(content_of(members, "statement.json"), today);
    check_waivers(waivers, suite);
    return waivers;
  } catch (const input_error& error) {
    throw input_error(fmt::format("statement.json: {}", error.what()));
  }
}

constexpr std::string_view notice_of_oracle = "the reference differs from the captured vectors";
constexpr std::string_view verdict_of_oracle =
    "does not conform: the reference differs from the captured vectors";
constexpr std::string_view verdict_of_evidence =
    "does not conform: the GPU evidence is wrong, stale or missing";

void check_verdict(const run_result& result, const std::vector<waiver>& waivers) {
  run_result judged = result;
  judged.notices.clear();
  judged.verdict = verdict_of(result);
  apply_waivers(waivers, false, judged);
  // A run may be refused for more than its cases, never accepted for less.
  const bool stricter =
      result.verdict == verdict_of_oracle ||
      (result.verdict == verdict_of_evidence && judged.verdict.rfind("conforms", 0) == 0);
  require(result.verdict == judged.verdict || stricter,
          fmt::format("the verdict '{}' does not follow from the cases: they give '{}'",
                      result.verdict, judged.verdict));
  std::vector<std::string> waived;
  bool oracle_differs = false, evidence_is_wrong = false;
  for (const std::string& notice : result.notices) {
    const auto starts = [&](std::string_view with) { return notice.rfind(with, 0) == 0; };
    if (starts("waived: ")) waived.push_back(notice);
    oracle_differs = oracle_differs || notice == notice_of_oracle;
    evidence_is_wrong = evidence_is_wrong || starts("GPU evidence is WRONG: ");
    require(
        starts("waived: ") || notice == notice_of_oracle ||
            (notice == printable(notice) &&
             (starts("GPU evidence is WRONG: ") || starts("GPU evidence is stale: ") ||
              starts("GPU evidence is verified: ") || notice == "GPU evidence: none is recorded")),
        "report.json: it holds a notice that no acceptance run makes");
  }
  require(oracle_differs == (result.verdict == verdict_of_oracle),
          "report.json: its verdict and its notice on the reference do not agree");
  require(!evidence_is_wrong || result.verdict.rfind("conforms", 0) != 0,
          "report.json: it conforms in spite of GPU evidence that is wrong");
  require(waived == judged.notices,
          "report.json: its waived cases are not those of statement.json");
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// What both members say of the candidate and of kvcts.
void compare_environments(std::map<std::string, std::string> measured,
                          std::map<std::string, std::string> reduced) {
  for (const auto& [key, value] : reduced) {
    require(parts::is_reproducible(key),
            "report.json: its environment holds what changes from run to run");
  }
  const std::string kvcts(parts::kvcts_digest);
  require(is_digest(reduced[kvcts]), "report.json: the SHA-256 of kvcts is missing");
  const auto program = reduced.find("candidate program sha256");
  require(program == reduced.end() || program->second == reduced[kvcts],
          "report.json: a built-in candidate is of another kvcts");
  // These only the report has, and the folder of a library only environment.json.
  for (const char* key : {"candidate kernels", "candidate program sha256"}) reduced.erase(key);
  reduced.erase(kvcts);
  for (auto at = measured.begin(); at != measured.end();) {
    at = parts::is_reproducible(at->first) ? std::next(at) : measured.erase(at);
  }
  const auto library = measured.find("candidate library");
  if (library != measured.end()) {
    library->second = library->second.substr(library->second.find_last_of('/') + 1);
  }
  require(measured == reduced,
          "environment.json: is of another candidate or kvcts than report.json");
}

// "reference against a.h5: 20 cases, 1,000 bytes compared, 0 differ".
bool is_summary(std::string_view line, const std::string& file, bool holds) {
  const auto take = [&](std::string_view text) {
    if (line.substr(0, text.size()) != text) return false;
    line.remove_prefix(text.size());
    return true;
  };
  const auto take_number = [&] {
    const std::size_t length = std::min(line.find_first_not_of("0123456789,"), line.size());
    line.remove_prefix(length);
    return length != 0;
  };
  return take("reference against " + file + ": ") && take_number() && take(" cases, ") &&
         take_number() && take(" bytes compared, ") && (holds ? take("0") : take_number()) &&
         line == " differ";
}

// What stands before the result: a line of each captured file.
void check_log(const std::string& log, const std::string& end, const suite_manifest& suite,
               bool oracle_holds) {
  const bool ends =
      log.size() >= end.size() && log.compare(log.size() - end.size(), end.size(), end) == 0;
  require(ends, "log.txt: does not end with what a run prints of report.json");
  std::vector<std::string> files;
  constexpr std::string_view captured = "vectors/captured/";
  for (const manifest_case& c : suite.cases) {
    if (c.source.rfind(captured, 0) != 0) continue;
    const std::string name = c.source.substr(captured.size());
    if (std::find(files.begin(), files.end(), name) == files.end()) files.push_back(name);
  }
  const std::string before = log.substr(0, log.size() - end.size());
  require(before.empty() || before.back() == '\n', "log.txt: the result does not begin a line");
  std::istringstream lines(before);
  std::size_t at = 0;
  for (std::string line; std::getline(lines, line); ++at) {
    require(at < files.size() && is_summary(line, files[at], oracle_holds),
            "log.txt: does not begin with what a run prints of the captured files");
  }
  require(at == files.size(), "log.txt: a captured file is missing");
}

void check_environment(const std::vector<archive_member>& members, const run_result& result) {
  const std::string& text = content_of(members, "environment.json");
  std::map<std::string, std::string> environment;
  try {
    environment = parts::environment_from(text);
  } catch (const nlohmann::json::exception&) {
    throw input_error("environment.json: is no list of texts");
  }
  require(parts::environment_text(environment) == text,
          "environment.json: is not as the suite writes it");
  for (const char* name : {"host", "system", "time", "compiler"}) {
    require(environment.count(name) != 0, fmt::format("environment.json: no {}", name));
  }
  compare_environments(std::move(environment), result.environment);
}

}  // namespace

std::string read_submission(const std::string& path) {
  struct stat at {};
  if (stat(path.c_str(), &at) != 0 || !S_ISREG(at.st_mode)) {
    throw input_error(path + ": is no file: name a submission that kvcts accept wrote");
  }
  if (static_cast<std::uint64_t>(at.st_size) > most_bytes) {
    throw input_error(path + ": is larger than any submission (256 MiB)");
  }
  std::string bytes(static_cast<std::size_t>(at.st_size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in) throw input_error(path + ": cannot be read");
  if (first_member_of(bytes) != parts::sums_name) {
    throw input_error(path + ": is no submission: name an archive that kvcts accept wrote");
  }
  return bytes;
}

submission_check check_submission(std::string_view archive, const std::string& today,
                                  const std::function<std::string(const run_result&)>& printed,
                                  std::string_view manifest) {
  submission_check made;
  made.archive_digest = digest_of_text(archive);
  try {
    const std::vector<archive_member> members = read_archive(archive);
    check_names(members);
    check_sums(members);
    const suite_manifest suite = manifest_in(members, manifest);
    const run_result result = report_in(members);
    check_cases(result, suite);
    const std::vector<waiver> waivers = waivers_in(members, today, suite);
    check_verdict(result, waivers);
    require(content_of(members, "candidate.json") == parts::candidate_text(result),
            "candidate.json: does not describe the candidate of report.json");
    require(parts::candidate_digest(result).size() == 64,
            "report.json: the candidate's SHA-256 is missing");
    require(content_of(members, "statement.json") == parts::statement_text(result, waivers),
            "statement.json: states another candidate, suite or verdict than report.json");
    check_log(content_of(members, "log.txt"), printed(result), suite,
              result.verdict != verdict_of_oracle);
    check_environment(members, result);
    made.holds = true;
    made.candidate = result.candidate;
    made.version = result.candidate_version;
    made.candidate_digest = parts::candidate_digest(result);
    made.profile = result.profile;
    made.suite_version = result.suite_version;
    made.suite_digest = result.suite_digest;
    made.waivers = waivers;
    made.verdict = result.verdict;
    made.members = members.size();
    made.cases = result.cases.size();
    made.members_digest = reproducible_digest(members);
  } catch (const input_error& error) {
    made.problem = printable(error.what());
  } catch (const std::exception& error) {
    made.problem = printable(fmt::format("it cannot be read: {}", error.what()));
  }
  return made;
}

}  // namespace kvcts
