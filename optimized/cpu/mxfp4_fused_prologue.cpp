#include "optimized/cpu/kernel.h"
#include "optimized/kernels/prologue.h"

namespace kvcts::KVCTS_TARGET {

void mxfp4_fused_prologue(const mxfp4_fused_prologue_arguments& a, profile p, std::int64_t first,
                          std::int64_t last) {
  for (std::int64_t token = first; token < last; ++token) {
    normalize_q<group, false>(a, token, p);
    normalize_kv<group, false>(a, token, p);
    insert_key<group, indexer_record::mxfp4, false>(a.keys, token, p);
    fill_topk_row<group>(a.topk, token);
  }
}

}  // namespace kvcts::KVCTS_TARGET
