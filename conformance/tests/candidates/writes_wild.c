/* Writes through a pointer that is no address. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  volatile char* nowhere = (volatile char*)(uintptr_t)0x1234567812345678u;
  (void)call;
  *nowhere = 1;
  return KVCTS_OK;
}
