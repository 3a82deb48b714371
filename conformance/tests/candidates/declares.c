/* Claims one profile, and no cases of a flag. */
#define CANDIDATE_PROFILES \
  { "nvidia", NULL }
#define CANDIDATE_FLAGS_NOT_CLAIMED \
  { "EmptyRows", NULL }
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  return KVCTS_OK;
}
