// Text that several commands print.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

// Case, places and replay command.
void print_failure(const case_result& c);
// The first failures, a line a kernel, notices, verdict.
void print_result(const run_result& result);
// A counter on standard error where that is a terminal, else nothing.
std::function<void(std::size_t, std::size_t)> progress_on_terminal();

}  // namespace kvcts
