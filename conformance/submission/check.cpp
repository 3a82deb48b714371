// Whether a submission holds. The bytes come from outside: nothing in them is believed before it is
// computed again.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "conformance/submission/parts.h"
#include "conformance/submission/submission.h"
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

std::vector<waiver> waivers_in(const std::vector<archive_member>& members,
                               const std::string& today) {
  try {
    return waivers_from(content_of(members, "statement.json"), today);
  } catch (const input_error& error) {
    throw input_error(fmt::format("statement.json: {}", error.what()));
  }
}

void check_verdict(const run_result& result, const std::vector<waiver>& waivers) {
  run_result judged = result;
  judged.notices.clear();
  judged.verdict = verdict_of(result);
  apply_waivers(waivers, false, judged);
  // A run may be refused for more than its cases, never accepted for less.
  const bool stricter = judged.verdict.rfind("conforms", 0) == 0 &&
                        result.verdict.rfind("does not conform: the ", 0) == 0;
  require(result.verdict == judged.verdict || stricter,
          fmt::format("the verdict '{}' does not follow from the cases: they give '{}'",
                      result.verdict, judged.verdict));
  std::vector<std::string> waived;
  for (const std::string& notice : result.notices) {
    if (notice.rfind("waived: ", 0) == 0) waived.push_back(notice);
  }
  require(waived == judged.notices,
          "report.json: its waived cases are not those of statement.json");
}

void check_environment(const std::vector<archive_member>& members) {
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
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
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
    const std::vector<waiver> waivers = waivers_in(members, today);
    check_verdict(result, waivers);
    require(content_of(members, "candidate.json") == parts::candidate_text(result),
            "candidate.json: does not describe the candidate of report.json");
    require(parts::candidate_digest(result).size() == 64,
            "report.json: the candidate's SHA-256 is missing");
    require(content_of(members, "statement.json") == parts::statement_text(result, waivers),
            "statement.json: states another candidate, suite or verdict than report.json");
    require(ends_with(content_of(members, "log.txt"), "verdict: " + result.verdict + "\n"),
            "log.txt: does not end with the verdict of report.json");
    check_environment(members);
    made.holds = true;
    made.candidate = result.candidate;
    made.version = result.candidate_version;
    made.suite_digest = result.suite_digest;
    made.verdict = result.verdict;
    made.members = members.size();
    made.cases = result.cases.size();
    made.members_digest = reproducible_digest(members);
  } catch (const input_error& error) {
    made.problem = error.what();
  } catch (const std::exception& error) {
    made.problem = fmt::format("it cannot be read: {}", error.what());
  }
  return made;
}

}  // namespace kvcts
