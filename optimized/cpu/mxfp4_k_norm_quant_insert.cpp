#include "optimized/cpu/kernel.h"
#include "optimized/kernels/key_insert.h"

namespace kvcts::KVCTS_TARGET {

void mxfp4_k_norm_quant_insert(const mxfp4_k_norm_quant_insert_arguments& a, profile p,
                               std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    insert_key<group, indexer_record::mxfp4, false>(a.keys, row, p);
    fill_topk_row<group>(a.topk, row);
  }
}

}  // namespace kvcts::KVCTS_TARGET
