/* For `bench`: the right bytes for one form of fused_layout, zeros not written or an error for the
 * others, and no answer for calls of a kernel that it claims. */
#include <stdlib.h>

#define CANDIDATE_KERNELS \
  { "fused_layout", "compute_global_topk_indices_and_lens", NULL }
#define CANDIDATE_WRITES(op) (strcmp(op, "q") == 0)
#define CANDIDATE_MISBEHAVES(op, heads) (strcmp(op, "q") != 0)
#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer write_all_but_zeros(const kvcts_call* call) {
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  const size_t bytes = bytes_of(y);
  unsigned char* right = malloc(bytes);
  kvcts_argument arguments[2];
  kvcts_call other = *call;
  memcpy(arguments, call->arguments, sizeof arguments);
  arguments[1].tensor.data = right;
  other.arguments = arguments;
  write_right_bytes(&other);
  for (size_t i = 0; i < bytes; ++i) {
    if (right[i] != 0) ((unsigned char*)y->data)[i] = right[i];
  }
  free(right);
  return KVCTS_OK;
}

static kvcts_answer misbehave(const kvcts_call* call) {
  const char* op = kvcts_text(call, "op", "");
  if (strcmp(op, "") == 0) return kvcts_say(call, KVCTS_UNSUPPORTED, "no tables");
  if (strcmp(op, "o") == 0) return write_all_but_zeros(call);
  return kvcts_say(call, KVCTS_ERROR, "no shared\nmemory left");
}
