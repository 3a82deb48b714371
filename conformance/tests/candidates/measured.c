/* For `bench`: the right bytes for one form of fused_layout, another byte or an error for the
 * others, and no answer for calls of a kernel that it claims. */
#define CANDIDATE_KERNELS \
  { "fused_layout", "compute_global_topk_indices_and_lens", NULL }
#define CANDIDATE_MISBEHAVES(op, heads) (strcmp(op, "q") != 0)
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  if (y == NULL) return kvcts_say(call, KVCTS_UNSUPPORTED, "no tables");
  if (strcmp(kvcts_text(call, "op", ""), "o_chunk") == 0) {
    return kvcts_say(call, KVCTS_ERROR, "no shared\nmemory left");
  }
  ((unsigned char*)y->data)[bytes_of(y) - 1] ^= 1;
  return KVCTS_OK;
}
