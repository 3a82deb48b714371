/* Right. */
#include "conformance/tests/candidates/cuda/fused_layout_cuda.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  return KVCTS_OK;
}
