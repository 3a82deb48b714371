/* Never comes back. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  volatile int more = 1;
  (void)call;
  while (more) {
  }
  return KVCTS_OK;
}
