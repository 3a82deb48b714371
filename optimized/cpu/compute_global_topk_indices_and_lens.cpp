#include "optimized/kernels/compute_global_topk_indices_and_lens.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

void compute_global_topk_indices_and_lens(const compute_global_topk_indices_and_lens_arguments& a,
                                          profile /*p*/, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) global_topk_row<group, 1, false>(a, row);
}

}  // namespace kvcts::KVCTS_TARGET
