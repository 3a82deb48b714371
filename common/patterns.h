// Shell patterns: '*', '?', '[...]'.
#pragma once

#include <string>

namespace kvcts {

bool matches_pattern(const std::string& pattern, const std::string& name);

}  // namespace kvcts
