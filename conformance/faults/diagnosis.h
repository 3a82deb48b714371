// Which fault of the catalogue wrote a candidate's bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/faults/faults.h"
#include "conformance/runner/result.h"
#include "vectors/suite.h"

namespace kvcts {

// A call whose results differ. `expected` and `got` hold the same buffers in the same order.
struct observed_call {
  std::string kernel, name;  // of the case
  attribute_map attributes;
  std::vector<buffer> inputs;  // initial content of updated arguments too
  std::vector<buffer> expected, got;
  std::byte fill = canary;  // of the outputs before the call
  profile rules = profile::nvidia;
};

// Tries each fault of the kernel, then, where none explains every byte, pairs of faults, for at
// most `seconds`.
diagnosis diagnose(const observed_call& call, int threads, double seconds = 10);

// Calls of one kernel, the smallest first, made when they are needed. In `passing` ones `got` is
// what is expected.
struct examined_calls {
  std::vector<std::function<observed_call()>> failing, passing;
};
// The same of the first failing call. Where several faults explain it, those are left that fit the
// next calls too: write the candidate's bytes where it fails, and the right ones where it passes.
diagnosis diagnose(const examined_calls& calls, int threads, double seconds = 10);

}  // namespace kvcts
