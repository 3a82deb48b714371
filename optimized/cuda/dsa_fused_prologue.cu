#include "optimized/cuda/prologue.h"

namespace kvcts {

void launch_dsa_fused_prologue(const dsa_fused_prologue_arguments& a, profile p,
                               cudaStream_t stream) {
  launch_prologue<device::indexer_record::fp8>(a, p, stream, "dsa_fused_prologue");
}

}  // namespace kvcts
