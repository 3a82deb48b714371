#include "optimized/cuda/key_insert.h"

namespace kvcts {

void launch_mxfp4_k_norm_quant_insert(const mxfp4_k_norm_quant_insert_arguments& a, profile p,
                                      cudaStream_t stream) {
  launch_key_insert<device::indexer_record::mxfp4>(a, p, stream, "mxfp4_k_norm_quant_insert");
}

}  // namespace kvcts
