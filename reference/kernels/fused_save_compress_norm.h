// docs/kernels.md, fused_save_compress_norm.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void fused_save_compress_norm(const call& c, const Rules& rules);

}  // namespace kvcts
