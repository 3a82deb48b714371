#include "reports/reports.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/replaced_file.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

constexpr const char* report_names[] = {"report.json", "report.html", "report.md", "junit.xml"};

[[noreturn]] void refuse(const fs::path& what, const std::string& why) {
  throw input_error("report directory: " + what.string() + " " + why +
                    "; give a directory that can be written");
}

void write(const replaced_file& file, const fs::path& dir, std::string_view text) {
  const std::string why = file.write(text);
  if (!why.empty()) refuse(dir, "cannot be written (" + why + ")");
}

}  // namespace

void check_report_directory(const std::string& dir) {
  if (dir.empty()) {
    throw input_error("report directory: the name is empty; give a directory that can be written");
  }
  std::error_code error;
  fs::create_directories(dir, error);
  if (error || !fs::is_directory(dir, error)) {
    refuse(dir, "cannot be created" + (error ? " (" + error.message() + ")" : std::string()));
  }
  for (const char* name : report_names) {
    if (fs::is_directory(fs::path(dir) / name, error)) {
      refuse(fs::path(dir) / name, "is a directory");
    }
  }
  write(replaced_file((fs::path(dir) / ".probe").string()), dir, "");
}

void write_reports(const std::string& dir, const run_result& result) {
  const std::pair<const char*, std::string> files[] = {
      {report_names[0], report_json(result)},
      {report_names[1], report_html(result)},
      {report_names[2], report_markdown(result)},
      {report_names[3], report_junit(result)},
  };
  check_report_directory(dir);
  // All of them are written before the first is put in place.
  std::vector<replaced_file> written;
  for (const auto& [name, text] : files) {
    written.emplace_back((fs::path(dir) / name).string());
    write(written.back(), dir, text);
  }
  for (replaced_file& file : written) {
    const std::string why = file.put();
    if (!why.empty()) refuse(file.path(), "cannot be replaced (" + why + ")");
  }
}

}  // namespace kvcts
