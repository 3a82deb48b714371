/* A candidate for KVCTS. fused_layout is filled in; every other kernel answers "unsupported".
 *
 *   cmake -S . -B build && cmake --build build
 *   kvcts run --candidate build/libcandidate.so
 *
 * To add a kernel: `kvcts describe KERNEL --abi` prints what a call of it holds, docs/kernels.md
 * and docs/numerics.md of KVCTS tell what it must do. Write a function like fused_layout() below,
 * add its line to `kernels` and its name to `claimed`. Still to be written:
 *   KVCTS_OTHER_KERNELS
 */
#include <string.h>

#include "kvcts_candidate.h"

/* y = the rows of x in another order. x and y: [N, ...], the same type, row-major. */
static kvcts_answer fused_layout(const kvcts_call* call) {
  const kvcts_tensor* x = kvcts_find_tensor(call, "x");
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  const char* op = kvcts_text(call, "op", "");
  const int64_t heads = kvcts_integer(call, "heads", 0);
  const int64_t head_dim = kvcts_integer(call, "head_dim", 0);

  /* A unit is what moves as one: 16 rows (q), 32 rows (o), or the one row of a chunk (o_chunk). */
  const int64_t dims = strcmp(op, "q") == 0 ? 16 : 32;
  const int64_t unit_rows = strcmp(op, "o_chunk") == 0 ? 1 : dims;
  const int64_t units = head_dim / dims; /* of a head */

  int64_t row_bytes = x->storage.bits / 8;
  for (int32_t axis = 1; axis < x->ndim; ++axis) row_bytes *= x->shape[axis];
  const int64_t bytes = unit_rows * row_bytes;
  const int64_t count = x->shape[0] / unit_rows;
  if (bytes == 0) return KVCTS_OK; /* rows of no elements */

  for (int64_t i = 0; i < count; ++i) {
    /* From (group, head, unit) to (group, unit, head). */
    const int64_t group = i / (heads * units);
    const int64_t head = i / units % heads;
    const int64_t unit = i % units;
    const int64_t to = (group * units + unit) * heads + head;
    memcpy((char*)y->data + to * bytes, (const char*)x->data + i * bytes, (size_t)bytes);
  }
  return KVCTS_OK;
}

struct kernel {
  const char* name;
  kvcts_answer (*run)(const kvcts_call* call);
};

static const struct kernel kernels[] = {
    {"fused_layout", fused_layout},
};

/* What the verdict is about; ends in a null pointer. */
static const char* const claimed[] = {"fused_layout", NULL};

KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void) {
  static kvcts_candidate_info info;
  info.abi_version = KVCTS_ABI_VERSION;
  info.struct_bytes = sizeof info;
  info.name = "mine";
  info.version = "0.1";
  info.vendor = NULL;
  info.device.type = KVCTS_CPU; /* KVCTS_CUDA: device pointers and a stream */
  info.device.id = 0;
  info.kernels = claimed;
  info.profiles = NULL;          /* all; their arithmetic differs: name those that you follow */
  info.flags_not_claimed = NULL; /* none */
  return &info;
}

KVCTS_EXPORT kvcts_answer kvcts_candidate_run(const kvcts_call* call) {
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; ++i) {
    if (strcmp(kernels[i].name, call->kernel) == 0) return kernels[i].run(call);
  }
  return kvcts_say(call, KVCTS_UNSUPPORTED, "not written yet");
}
