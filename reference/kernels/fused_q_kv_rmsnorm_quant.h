// docs/kernels.md, fused_q_kv_rmsnorm_quant.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void fused_q_kv_rmsnorm_quant(const call& c, const Rules& rules);

}  // namespace kvcts
