// docs/kernels.md, dequantize_and_gather_k_cache.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void dequantize_and_gather_k_cache(const call& c, const Rules& rules);

}  // namespace kvcts
