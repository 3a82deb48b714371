/* Is right in the first call of a process and wrong after it. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  static int calls = 0;
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  if (calls++ >= 2) *(unsigned char*)y->data ^= 1;
  return KVCTS_OK;
}
