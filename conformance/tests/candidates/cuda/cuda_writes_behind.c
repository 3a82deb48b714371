/* Writes behind an output on the device. */
#include "conformance/tests/candidates/cuda/fused_layout_cuda.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  return cuda.fill(pointer_of(y) + bytes_of(y) + 100, 7, 2, call->stream) == 0 ? KVCTS_OK
                                                                               : KVCTS_ERROR;
}
