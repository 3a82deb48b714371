// The reference against the `expected` of a vector file.
#pragma once

#include <string>
#include <vector>

#include "conformance/runner/run.h"
#include "vectors/suite.h"

namespace kvcts {

struct vector_check {
  struct row {
    std::string kernel;
    std::uint64_t cases = 0, compared = 0, different = 0;  // bytes
    bool implemented = true;
  };
  std::vector<row> rows;              // by kernel
  std::vector<case_result> failures;  // cases in which bytes differ; `expected` is the file's
};

// Recomputes every case of the file that `kernels` matches. Kernels that are not implemented in
// this version are rows without a comparison.
vector_check check_vectors(const std::string& path, const kernel_filter& kernels, int threads);

// "derived" of a file whose `expected` is the reference's, "captured" of anybody else's.
std::string provenance_of(const suite_info& info);

}  // namespace kvcts
