// What the suite examines: an implementation of some of the kernels.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

class candidate {
 public:
  virtual ~candidate() = default;
  virtual std::string name() const = 0;
  // What tells builds or devices apart: "avx512", "NVIDIA H200, driver ...".
  virtual std::string version() const = 0;
  virtual bool supports(std::string_view kernel) const = 0;
  // The call's tensors are in host memory and have passed check(), outputs allocated. An exception
  // is a crash.
  virtual void run(const call& c, profile p) = 0;
};

// 0 (or less) asks for all cores.
int thread_count(int asked);

// The built-in ones: "reference", "cpu", "cuda".
const std::vector<std::string_view>& built_in_candidates();
// Throws input_error for an unknown name, and for "cuda" where there is no device. `threads` 0: all
// cores.
std::unique_ptr<candidate> make_candidate(std::string_view name, int threads);
// The reference under other rules, played as a candidate.
std::unique_ptr<candidate> candidate_of_rules(std::string name,
                                              std::function<Rules(profile)> rules);

}  // namespace kvcts
