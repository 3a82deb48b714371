#include "optimized/kernels/combine_topk_swa_indices.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

void combine_topk_swa_indices(const combine_topk_swa_indices_arguments& a, profile /*p*/,
                              std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) combine_row<group, 1, false>(a, row);
}

}  // namespace kvcts::KVCTS_TARGET
