// docs/kernels.md, combine_topk_swa_indices.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void combine_topk_swa_indices(const call& c, const Rules& rules);

}  // namespace kvcts
