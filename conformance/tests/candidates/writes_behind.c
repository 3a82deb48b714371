/* Writes the byte behind an output, the value that is there at first. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  *((volatile unsigned char*)y->data + bytes_of(y)) = 0xCC;
  return KVCTS_OK;
}
