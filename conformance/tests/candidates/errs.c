/* Says that it went wrong. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  return kvcts_say(call, KVCTS_ERROR, "no shared memory left");
}
