// docs/kernels.md, indexer_k_norm_rope_store.
#pragma once

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

void indexer_k_norm_rope_store(const call& c, const Rules& rules);

}  // namespace kvcts
