// The file of a submission.
#pragma once

#include <string>
#include <vector>

#include "conformance/submission/submission.h"

namespace kvcts {

// Tried before a run, and left alone where there is nothing to submit. An empty name: none.
class submission_file {
 public:
  explicit submission_file(std::string path);
  ~submission_file();
  submission_file(const submission_file&) = delete;
  submission_file& operator=(const submission_file&) = delete;

  // Prints a line, which log.txt will hold too.
  void log(const std::string& line);
  // Throws input_error where the submission would not hold.
  void write(const run_result& result, const candidate& subject,
             const std::vector<planned_case>& plan, const run_options& options,
             const std::vector<waiver>& waivers) const;

 private:
  std::string path_, temporary_, log_;
};

}  // namespace kvcts
