/* Gives other bytes at each call. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  static unsigned char calls = 0;
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  *(unsigned char*)y->data ^= calls++ & 1;
  return KVCTS_OK;
}
