#include "common/patterns.h"

#include <fnmatch.h>

namespace kvcts {

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace kvcts
