/* Uses an input on the device as scratch memory. */
#include "conformance/tests/candidates/cuda/fused_layout_cuda.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* x = kvcts_find_tensor(call, "x");
  return cuda.fill(pointer_of(x), 0x5A, bytes_of(x), call->stream) == 0 ? KVCTS_OK : KVCTS_ERROR;
}
