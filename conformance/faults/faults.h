// The catalogue of faults: wrong rules that real kernels had, each an edit of one rule of the
// reference. What a suite is worth is which of them it catches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/numerics/rules.h"

namespace kvcts {

struct fault {
  std::string_view name;
  std::string_view text;                  // what the kernel's author did, in one line
  std::vector<std::string_view> kernels;  // those whose bytes it can change
  void (*edit)(Rules&);
  std::optional<profile> only = std::nullopt;  // the profile in which it is one; absent: both
  bool past_2gib = false;                      // shows only past 2^31 bytes, where no file reaches
};

// In a fixed order, by subject.
const std::vector<fault>& all_faults();
std::vector<const fault*> faults_of(std::string_view kernel);
// Null where there is none of the name.
const fault* find_fault(std::string_view name);
// The catalogue as a table in Markdown: docs/faults.md holds it.
std::string fault_table();
bool concerns(const fault& f, profile p);
Rules rules_with(const fault& f, profile p);

}  // namespace kvcts
