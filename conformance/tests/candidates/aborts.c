/* Gives up. */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  fputs("assertion failed: lanes == 32\n", stderr);
  abort();
}
