#include "optimized/kernels/build_flashinfer_mixed_sparse_indices.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

void build_flashinfer_mixed_sparse_indices(const build_flashinfer_mixed_sparse_indices_arguments& a,
                                           profile /*p*/, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    sparse_row<group, 1, false>(a, row);
  }
}

}  // namespace kvcts::KVCTS_TARGET
