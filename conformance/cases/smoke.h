// The level smoke is the list smoke.inc.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "conformance/cases/cases.h"

namespace kvcts {

// (kernel, case).
std::vector<std::pair<std::string_view, std::string_view>> smoke_list();
// What it is chosen from: its cases, and those whose builder has them as small as smoke.
std::vector<case_spec> smoke_candidates(std::string_view kernel, std::uint64_t seed);

}  // namespace kvcts
