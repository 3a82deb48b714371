// Words that both report forms use.
#pragma once

#include <string_view>

#include "conformance/runner/result.h"

namespace kvcts {

constexpr std::string_view name_of(outcome what) {
  switch (what) {
    case outcome::passed:
      return "passed";
    case outcome::failed:
      return "failed";
    case outcome::unsupported:
      return "unsupported";
    case outcome::crashed:
      return "crashed";
    case outcome::timed_out:
      return "timed_out";
  }
  return "unknown";
}

}  // namespace kvcts
