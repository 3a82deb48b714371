// docs/kernels.md, mxfp4_q_quant.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void mxfp4_q_quant(const call& c, const Rules& rules);

}  // namespace kvcts
