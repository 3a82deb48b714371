// docs/kernels.md, build_flashinfer_mixed_sparse_indices.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void build_flashinfer_mixed_sparse_indices(const call& c, const Rules& rules);

}  // namespace kvcts
