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

// The same of failing calls of one kernel, the smallest first: where several faults explain it, the
// next ones, four at most, narrow them.
diagnosis diagnose(const std::vector<std::function<observed_call()>>& calls, int threads,
                   double seconds);

// Leaves of several complete explanations those that hold for another call too, if any does.
void narrow(diagnosis& found, const observed_call& other);

}  // namespace kvcts
