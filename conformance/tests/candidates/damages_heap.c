/* Writes past the end of its own heap block, which nothing notices in the call. */
#include <stdlib.h>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  volatile char* block = malloc(24);
  (void)call;
  for (int i = 0; i < 64; ++i) block[i] = 0x7F;
  return KVCTS_OK;
}
