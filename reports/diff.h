// What changed from one report to another.
#pragma once

#include <string>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

struct report_difference {
  std::vector<std::string> worse, better;
  std::vector<std::string> other;  // neither: another seed, another device, other expected bytes

  bool none() const { return worse.empty() && better.empty() && other.empty(); }
};

// Times and the environment do not count. Cases are matched by kernel and name, and by
// file where a report has several of one name.
report_difference difference_of(const run_result& before, const run_result& after);
// Whole lines.
std::string text_of(const report_difference& d);

}  // namespace kvcts
