/* Uses an input as scratch memory. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* x = kvcts_find_tensor(call, "x");
  *((volatile char*)x->data + 2) = 1;
  return KVCTS_OK;
}
