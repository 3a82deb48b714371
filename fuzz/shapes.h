// Sweeps over small shapes: a kernel's sizes, and what else decides where its bytes go, in every
// combination to a bound. Values, and whatever is not named, are drawn by the shape's number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "conformance/exhaustive/sweep.h"
#include "fuzz/case.h"

namespace kvcts {

struct shape_bound {
  fuzz_plan plan;                     // its first knobs are those that are gone through
  std::size_t tokens = 0, heads = 0;  // 0..tokens; 1..heads, 0: the kernel has no such number
  std::size_t knobs = 0;              // how many
  std::string text;                   // "0..8 tokens, 1..8 heads, more_heads 0 1 2 3"

  std::uint64_t shapes() const;
};
// One a kernel, in the contracts' order.
const std::vector<shape_bound>& shape_bounds();

fuzz_case shape_of(const shape_bound& bound, std::uint64_t number);
std::string words_of(const shape_bound& bound, const fuzz_case& c);

// Whole buffers against the reference. Kernels that the candidate lacks are left out.
std::vector<sweep> shape_sweeps(candidate& subject, profile p);

}  // namespace kvcts
