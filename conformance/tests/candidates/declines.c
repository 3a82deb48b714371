/* Does not claim some cases of a kernel. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  return kvcts_say(call, KVCTS_UNSUPPORTED, "no scales");
}
