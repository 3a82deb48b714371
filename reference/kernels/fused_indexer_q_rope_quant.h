// docs/kernels.md, fused_indexer_q_rope_quant.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void fused_indexer_q_rope_quant(const call& c, const Rules& rules);

}  // namespace kvcts
