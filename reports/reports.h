// Report files of a run: report.json for programs (docs/report.schema.json), report.html for
// people, report.md for a pull request, junit.xml for CI. The last three follow from the first.
#pragma once

#include <string>

#include "conformance/runner/result.h"

namespace kvcts {

// Rises when a field of report.json changes its meaning or goes.
constexpr int report_schema_version = 2;

// Creates the directory where it is missing and tries a write in it, so that a run need not end
// before a bad path shows. Throws input_error.
void check_report_directory(const std::string& dir);

// Writes all four. They are written to temporaries beside their places first and
// renamed when all are complete: a failure leaves none. Throws input_error.
void write_reports(const std::string& dir, const run_result& result);

// The files' texts.
std::string report_json(const run_result& result);
std::string report_html(const run_result& result);
std::string report_markdown(const run_result& result);
std::string report_junit(const run_result& result);

// One case as a line, with its place in the plan, and back.
std::string case_line(const case_result& c);
case_result parse_case(const std::string& line);

// What report_json() wrote. Throws input_error where the file is none, is damaged, or does not
// agree with itself.
run_result read_report(const std::string& path);
// `name` stands in messages for the file that the text is of.
run_result parse_report(const std::string& text, const std::string& name);

}  // namespace kvcts
