// The folder of the reports.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

// Tried before a run and taken away again where there is nothing to report: bad input and an
// interruption leave nothing behind. An empty name: no report.
class report_folder {
 public:
  explicit report_folder(std::string folder);
  ~report_folder();
  report_folder(const report_folder&) = delete;
  report_folder& operator=(const report_folder&) = delete;

  void write(const run_result& result) const;

 private:
  std::string folder_;
  std::vector<std::filesystem::path> made_;
};

}  // namespace kvcts
