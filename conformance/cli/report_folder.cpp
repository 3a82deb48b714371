#include "conformance/cli/report_folder.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "reports/reports.h"

namespace kvcts {

namespace fs = std::filesystem;

report_folder::report_folder(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  for (fs::path at = fs::absolute(folder_).lexically_normal(); !at.empty() && !fs::exists(at);
       at = at.parent_path()) {
    made_.push_back(at);
  }
  check_report_directory(folder_);
}

report_folder::~report_folder() {
  std::error_code not_empty;
  for (const fs::path& at : made_) fs::remove(at, not_empty);  // the innermost first
}

void report_folder::write(const run_result& result) const {
  if (folder_.empty()) return;
  write_reports(folder_, result);
  fmt::print("report: {}/report.html (report.json, report.md and junit.xml beside it)\n",
             fs::absolute(folder_).lexically_normal().string());
}

}  // namespace kvcts
