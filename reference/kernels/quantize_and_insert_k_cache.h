// docs/kernels.md, quantize_and_insert_k_cache.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void quantize_and_insert_k_cache(const call& c, const Rules& rules);

}  // namespace kvcts
