#include "optimized/cuda/key_insert.h"

namespace kvcts {

void launch_indexer_k_norm_quant_insert(const indexer_k_norm_quant_insert_arguments& a, profile p,
                                        cudaStream_t stream) {
  launch_key_insert<device::indexer_record::fp8>(a, p, stream, "indexer_k_norm_quant_insert");
}

}  // namespace kvcts
