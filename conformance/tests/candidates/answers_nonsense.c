/* Gives no known answer. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  return 42;
}
