// docs/kernels.md, compute_global_topk_indices_and_lens.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void compute_global_topk_indices_and_lens(const call& c, const Rules& rules);

}  // namespace kvcts
