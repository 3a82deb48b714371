#include "conformance/exhaustive/examined.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/runner/run.h"

namespace kvcts {

// The built-in ones of the host keep nothing between calls.
examined_cases::examined_cases(candidate& subject, profile p)
    : subject_(subject),
      rules_(p),
      at_once_(subject.name() == "cpu" || subject.name() == "reference") {}

sweep_finding examined_cases::run(const test_case& c, std::uint64_t inputs,
                                  const std::string& what) {
  std::unique_lock<std::mutex> alone(guard_, std::defer_lock);
  if (!at_once_) alone.lock();
  const case_result result = run_case(c, subject_, rules_);
  sweep_finding found;
  found.inputs = inputs;
  if (result.what == outcome::passed) return found;
  found.mismatches = std::max<std::uint64_t>(result.bytes_different, 1);
  found.first = what + ": " + result.message;
  if (!result.places.empty()) {
    const difference& d = result.places.front();
    found.first = fmt::format("{}: {}: {}: expected {}, got {}", what, d.argument, d.place,
                              d.expected, d.got);
  }
  return found;
}

}  // namespace kvcts
