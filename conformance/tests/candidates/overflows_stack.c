/* Calls itself for ever. */
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  volatile char frame[4096];
  frame[0] = 1;
  return misbehave(call) + frame[0];
}
