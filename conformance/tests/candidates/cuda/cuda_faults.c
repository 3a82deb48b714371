/* Launches a kernel that writes through a null pointer: an error that stays for the process. */
#include "conformance/tests/candidates/cuda/fused_layout_cuda.h"

static const char writes_to_null[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry writes_to_null() {\n"
    "  .reg .b64 %address;\n"
    "  mov.u64 %address, 0;\n"
    "  st.global.u32 [%address], 1;\n"
    "  ret;\n"
    "}\n";

static kvcts_answer misbehave(const kvcts_call* call) {
  void* module = NULL;
  void* kernel = NULL;
  if (cuda.load(&module, writes_to_null) != 0 ||
      cuda.function(&kernel, module, "writes_to_null") != 0) {
    return kvcts_say(call, KVCTS_ERROR, "the kernel cannot be loaded");
  }
  if (cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, call->stream, NULL, NULL) != 0) {
    return kvcts_say(call, KVCTS_ERROR, "the kernel cannot be launched");
  }
  return KVCTS_OK;
}
