#include "optimized/cuda/prologue.h"

namespace kvcts {

void launch_mxfp4_fused_prologue(const mxfp4_fused_prologue_arguments& a, profile p,
                                 cudaStream_t stream) {
  launch_prologue<device::indexer_record::mxfp4>(a, p, stream, "mxfp4_fused_prologue");
}

}  // namespace kvcts
