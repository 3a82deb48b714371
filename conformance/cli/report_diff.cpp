// kvcts report diff.
#include <fmt/format.h>

#include "conformance/cli/commands.h"
#include "reports/diff.h"
#include "reports/reports.h"

namespace kvcts {

int report_diff_command(const std::string& before, const std::string& after) {
  const report_difference found = difference_of(read_report(before), read_report(after));
  fmt::print("{}", text_of(found));
  return found.worse.empty() ? 0 : 1;
}

}  // namespace kvcts
