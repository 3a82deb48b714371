// The cases of each kernel: what a suite holds. Generators draw from raw bits and tables, never
// from std::*_distribution or libm, so that every platform makes the same inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "vectors/suite.h"

namespace kvcts {

enum class level : std::uint8_t { smoke, acceptance, exhaustive };

// A case that is not built yet. `build` gives inputs (the initial content of updated arguments too)
// and attributes; `expected` is empty: the reference fills it.
struct case_spec {
  std::string kernel;
  std::string name;
  std::vector<std::string> flags;
  level from = level::smoke;  // smoke cases belong to acceptance too, and so on
  std::function<test_case()> build;
};

// Cases of one kernel up to a level, in a fixed order. The same seed gives the same bytes.
std::vector<case_spec> cases_of(std::string_view kernel, level up_to, std::uint64_t seed);

// What each flag says, for `describe`, docs and reports. Every flag that a builder uses is here.
struct flag_text {
  std::string_view flag, meaning;
};
const std::vector<flag_text>& flag_table();

}  // namespace kvcts
