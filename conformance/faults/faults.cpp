#include "conformance/faults/faults.h"

#include <algorithm>

#include "conformance/faults/parts.h"

namespace kvcts {

const std::vector<fault>& all_faults() {
  static const std::vector<fault> all = [] {
    std::vector<fault> made;
    fault_parts::add_elements(made);
    fault_parts::add_scales(made);
    fault_parts::add_arithmetic(made);
    fault_parts::add_layout(made);
    fault_parts::add_indices(made);
    return made;
  }();
  return all;
}

std::vector<const fault*> faults_of(std::string_view kernel) {
  std::vector<const fault*> found;
  for (const fault& f : all_faults()) {
    if (std::find(f.kernels.begin(), f.kernels.end(), kernel) != f.kernels.end()) {
      found.push_back(&f);
    }
  }
  return found;
}

const fault* find_fault(std::string_view name) {
  for (const fault& f : all_faults()) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

bool concerns(const fault& f, profile p) { return !f.only || *f.only == p; }

Rules rules_with(const fault& f, profile p) {
  Rules rules = rules_for(p);
  f.edit(rules);
  return rules;
}

}  // namespace kvcts
