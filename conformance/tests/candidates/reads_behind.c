/* Reads a vector too many of an input. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* x = kvcts_find_tensor(call, "x");
  return *((const volatile char*)x->data + bytes_of(x) + 16) * 0;
}
