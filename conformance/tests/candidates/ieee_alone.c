/* Claims the other profile than `bench` measures. */
#define CANDIDATE_PROFILES \
  { "ieee", NULL }
#define CANDIDATE_FLAGS_NOT_CLAIMED \
  { NULL }
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  return KVCTS_OK;
}
