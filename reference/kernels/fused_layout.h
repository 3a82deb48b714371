// docs/kernels.md, fused_layout.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void fused_layout(const call& c, const Rules& rules);

}  // namespace kvcts
