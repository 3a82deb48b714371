// The members of a submission, one by one: what writing and checking share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/submission/submission.h"

namespace kvcts::parts {

constexpr std::string_view sums_name = "SHA256SUMS";
// Of the environment: the SHA-256 of the program that ran.
constexpr std::string_view kvcts_digest = "kvcts sha256";

// The readers throw nlohmann's exceptions. Each text is what its writer makes of what is read.
suite_manifest manifest_from(const std::string& text);
std::map<std::string, std::string> environment_from(const std::string& text);
std::string environment_text(const std::map<std::string, std::string>& environment);
std::string candidate_text(const run_result& reduced);
// Whether report.json keeps it of the environment.
bool is_reproducible(std::string_view key);
std::string statement_text(const run_result& reduced, const std::vector<waiver>& waivers);
// Of the library, or of kvcts where the candidate is built in.
std::string candidate_digest(const run_result& reduced);
std::vector<std::string> waiver_notices(const std::vector<waiver>& waivers,
                                        const run_result& result);
// Every form of the report.
std::vector<archive_member> report_members(const run_result& reduced);
// In the form that sha256sum -c reads.
std::string sums_of(const std::vector<archive_member>& members);

}  // namespace kvcts::parts
