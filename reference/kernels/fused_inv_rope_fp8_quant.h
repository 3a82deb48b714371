// docs/kernels.md, fused_inv_rope_fp8_quant.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void fused_inv_rope_fp8_quant(const call& c, const Rules& rules);

}  // namespace kvcts
