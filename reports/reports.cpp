#include "reports/reports.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

constexpr const char* report_names[] = {"report.json", "report.html", "report.md", "junit.xml"};

[[noreturn]] void refuse(const fs::path& what, const std::string& why) {
  throw input_error("report directory: " + what.string() + " " + why +
                    "; give a directory that can be written");
}

fs::path temporary_of(const fs::path& dir, const std::string& name) {
  return dir / ("." + name + "." + std::to_string(::getpid()) + ".tmp");
}

// Removes the files that it names, unless they have been renamed away.
class temporaries {
 public:
  temporaries() = default;
  temporaries(const temporaries&) = delete;
  temporaries& operator=(const temporaries&) = delete;
  ~temporaries() {
    std::error_code ignored;
    for (const fs::path& path : paths_) {
      fs::remove(path, ignored);
    }
  }

  void write(const fs::path& path, const std::string& text) {
    paths_.push_back(path);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) {
      refuse(path.parent_path(), "cannot be written");
    }
  }

 private:
  std::vector<fs::path> paths_;
};

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
  temporaries probe;
  probe.write(temporary_of(dir, "probe"), "");
}

void write_reports(const std::string& dir, const run_result& result) {
  const std::pair<const char*, std::string> files[] = {
      {report_names[0], report_json(result)},
      {report_names[1], report_html(result)},
      {report_names[2], report_markdown(result)},
      {report_names[3], report_junit(result)},
  };
  check_report_directory(dir);
  temporaries written;
  for (const auto& [name, text] : files) {
    written.write(temporary_of(dir, name), text);
  }
  for (const auto& [name, text] : files) {
    std::error_code error;
    fs::rename(temporary_of(dir, name), fs::path(dir) / name, error);
    if (error) {
      refuse(fs::path(dir) / name, "cannot be replaced (" + error.message() + ")");
    }
  }
}

}  // namespace kvcts
