// kvcts report diff.
#include <fmt/format.h>

#include <filesystem>

#include "conformance/cli/commands.h"
#include "reports/diff.h"
#include "reports/reports.h"

namespace kvcts {
namespace {

run_result report_at(std::string path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) path += "/report.json";
  return read_report(path);
}

}  // namespace

int report_diff_command(const std::string& before, const std::string& after) {
  const report_difference found = difference_of(report_at(before), report_at(after));
  fmt::print("{}", text_of(found));
  return found.worse.empty() ? 0 : 1;
}

}  // namespace kvcts
