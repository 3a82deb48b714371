// What the outputs of the index kernels are by definition: each element as a set or formula of the
// arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "vectors/suite.h"

namespace kvcts {

struct index_outputs {
  std::vector<std::int64_t> ids, lens;
};

index_outputs define_global_topk(const test_case& c);
index_outputs define_combined(const test_case& c);
index_outputs define_mixed(const test_case& c);

// Elements of an i32 output.
std::vector<std::int64_t> numbers_of(const buffer& b);

}  // namespace kvcts
