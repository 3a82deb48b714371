// Cases of sweeps, run on a candidate by several threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "conformance/candidate/candidate.h"
#include "conformance/exhaustive/sweep.h"
#include "vectors/suite.h"

namespace kvcts {

class examined_cases {
 public:
  examined_cases(candidate& subject, profile p);

  // Whole buffers against the reference; the first place that differs, told with `what`.
  sweep_finding run(const test_case& c, std::uint64_t inputs, const std::string& what);

 private:
  candidate& subject_;
  profile rules_;
  bool at_once_;  // else one call at a time
  std::mutex guard_;
};

}  // namespace kvcts
