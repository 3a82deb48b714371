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

std::string fault_table() {
  std::string text = "| fault | what the author did | kernels |\n| --- | --- | --- |\n";
  for (const fault& f : all_faults()) {
    text += "| " + std::string(f.name) + " | " + std::string(f.text);
    if (f.only) text += " (profile " + std::string(name_of(*f.only)) + ")";
    text += " |";
    for (const std::string_view kernel : f.kernels) {
      text += (kernel == f.kernels.front() ? " " : ", ") + std::string(kernel);
    }
    text += " |\n";
  }
  return text;
}

bool concerns(const fault& f, profile p) { return !f.only || *f.only == p; }

Rules rules_with(const fault& f, profile p) {
  Rules rules = rules_for(p);
  f.edit(rules);
  return rules;
}

}  // namespace kvcts
