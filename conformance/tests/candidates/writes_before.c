/* Writes the byte before an output. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  *((volatile unsigned char*)y->data - 1) = 0;
  return KVCTS_OK;
}
