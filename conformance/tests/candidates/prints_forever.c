/* Prints and never comes back. */
#include <stdio.h>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  for (;;) puts("still here");
  return KVCTS_OK;
}
