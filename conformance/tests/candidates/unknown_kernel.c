/* Misspells a kernel. */
#include "conformance/candidate/kvcts_candidate.h"

KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void) {
  static const char* const kernels[] = {"fused_layuot", NULL};
  static kvcts_candidate_info info = {.abi_version = KVCTS_ABI_VERSION,
                                      .struct_bytes = sizeof(kvcts_candidate_info),
                                      .name = "misspelt",
                                      .version = "1",
                                      .device = {KVCTS_CPU, 0}};
  info.kernels = kernels;
  return &info;
}

KVCTS_EXPORT kvcts_answer kvcts_candidate_run(const kvcts_call* call) {
  (void)call;
  return KVCTS_OK;
}
