// docs/kernels.md, dsa_fused_prologue.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void dsa_fused_prologue(const call& c, const Rules& rules);

}  // namespace kvcts
