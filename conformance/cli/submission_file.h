// The file of a submission.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/replaced_file.h"
#include "conformance/submission/submission.h"

namespace kvcts {

// Tried before a run, and left alone where there is nothing to submit. An empty name: none.
class submission_file {
 public:
  explicit submission_file(const std::string& path);

  // Prints a line, which log.txt will hold too.
  void log(const std::string& line);
  // Throws input_error where the submission would not hold.
  void write(const run_result& result, const candidate& subject,
             const std::vector<planned_case>& plan, const run_options& options,
             const std::vector<waiver>& waivers);

 private:
  std::optional<replaced_file> file_;
  std::string log_;
};

}  // namespace kvcts
