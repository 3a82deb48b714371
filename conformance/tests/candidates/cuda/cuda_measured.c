/* For `bench`: one form of fused_layout done right, another with one wrong byte, an error for the
 * third; wrong bytes for mxfp4_q_quant, which a graph can capture; a wait for the stream, which it
 * cannot; calls of a claimed kernel that are not answered. */
#define CANDIDATE_KERNELS                                                    \
  {                                                                          \
    "fused_layout", "mxfp4_q_quant", "compute_global_topk_indices_and_lens", \
        "combine_topk_swa_indices", NULL                                     \
  }
#define CANDIDATE_MISBEHAVES(op, heads) (strcmp(op, "o") == 0)
#include "conformance/tests/candidates/cuda/fused_layout_cuda.h"

static kvcts_answer filled(const kvcts_call* call, const char* output) {
  const kvcts_tensor* t = kvcts_find_tensor(call, output);
  return cuda.fill(pointer_of(t), 7, bytes_of(t), call->stream) == 0
             ? KVCTS_OK
             : kvcts_say(call, KVCTS_ERROR, "fill");
}

static int answers(const kvcts_call* call, kvcts_answer* answer) {
  if (strcmp(call->kernel, "mxfp4_q_quant") == 0) {
    *answer = filled(call, "q_packed");
  } else if (strcmp(call->kernel, "compute_global_topk_indices_and_lens") == 0) {
    *answer = cuda.wait(call->stream) == 0 ? filled(call, "global_topk_indices")
                                           : kvcts_say(call, KVCTS_ERROR, "cannot wait");
  } else if (strcmp(call->kernel, "combine_topk_swa_indices") == 0) {
    *answer = kvcts_say(call, KVCTS_UNSUPPORTED, "no windows");
  } else if (strcmp(kvcts_text(call, "op", ""), "o_chunk") == 0) {
    *answer = kvcts_say(call, KVCTS_ERROR, "no shared memory left");
  } else {
    return 0;
  }
  return 1;
}

static kvcts_answer misbehave(const kvcts_call* call) {
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  return cuda.fill(pointer_of(y) + bytes_of(y) - 1, 0x5A, 1, call->stream) == 0 ? KVCTS_OK
                                                                                : KVCTS_ERROR;
}
