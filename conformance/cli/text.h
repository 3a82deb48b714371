// Text that several commands print.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

// What the two sides of a difference are called.
struct side_names {
  const char* expected = "expected";
  const char* got = "got";
};
// Case, places and replay command.
void print_failure(const case_result& c, const side_names& sides = {}, std::FILE* to = stdout);
// The first failures, a line a kernel, notices, verdict.
void print_result(const run_result& result, const side_names& sides = {}, std::FILE* to = stdout);

// One line on standard error where that is a terminal, else nothing; it is written again and again.
void show_progress(const std::string& what, std::uint64_t cases, std::uint64_t all,
                   std::uint64_t bytes);
void clear_progress();
// The same for the cases of a run; throws `interrupted` where the user has interrupted it.
std::function<void(std::size_t, std::size_t)> progress_on_terminal();

}  // namespace kvcts
