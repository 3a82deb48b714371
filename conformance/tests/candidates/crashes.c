/* Reads through a null pointer. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const volatile char* nowhere = NULL;
  (void)call;
  return *nowhere;
}
