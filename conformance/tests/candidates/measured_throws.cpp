// For `bench`: writes to an input, lets an exception out, or gives an answer that there is not.
#define CANDIDATE_KERNELS \
  { "fused_layout", NULL }
#define CANDIDATE_MISBEHAVES(op, heads) ((op)[0] != '\0')
#include <stdexcept>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  const char* op = kvcts_text(call, "op", "");
  if (strcmp(op, "o") == 0) throw std::runtime_error("no kernel for this size");
  if (strcmp(op, "o_chunk") == 0) return 42;
  *static_cast<unsigned char*>(kvcts_find_tensor(call, "x")->data) = 7;
  return KVCTS_OK;
}
