/* Ends its process. */
#include <stdlib.h>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  exit(7);
}
