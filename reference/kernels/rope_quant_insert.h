// docs/kernels.md, rope_quant_insert.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void rope_quant_insert(const call& c, const Rules& rules);

}  // namespace kvcts
