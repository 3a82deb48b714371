/* Built against an interface that is not this one. */
#define CANDIDATE_ABI_VERSION 99
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  return KVCTS_OK;
}
