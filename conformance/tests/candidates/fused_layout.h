/* What the misbehaving candidates share: fused_layout done right, and a place for the wrong. */
#pragma once

#include <string.h>

#include "conformance/candidate/kvcts_candidate.h"

/* Called when the right bytes are written, where CANDIDATE_MISBEHAVES says so. */
static kvcts_answer misbehave(const kvcts_call* call);

static void write_right_bytes(const kvcts_call* call) {
  const kvcts_tensor* x = kvcts_find_tensor(call, "x");
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  const char* op = kvcts_text(call, "op", "");
  const int64_t heads = kvcts_integer(call, "heads", 1);
  const int64_t dims = strcmp(op, "q") == 0 ? 16 : 32;
  const int64_t rows = strcmp(op, "o_chunk") == 0 ? 1 : dims;
  const int64_t units = kvcts_integer(call, "head_dim", dims) / dims;
  size_t bytes = (size_t)rows * (x->storage.bits / 8);
  for (int32_t axis = 1; axis < x->ndim; ++axis) bytes *= (size_t)x->shape[axis];
  if (bytes == 0) return;
  for (int64_t i = 0; i < x->shape[0] / rows; ++i) {
    const int64_t to = (i / (heads * units) * units + i % units) * heads + i / units % heads;
    memcpy((char*)y->data + (size_t)to * bytes, (const char*)x->data + (size_t)i * bytes, bytes);
  }
}

/* Bytes of a row-major tensor. */
static inline size_t bytes_of(const kvcts_tensor* t) {
  size_t bytes = t->storage.bits / 8;
  for (int32_t axis = 0; axis < t->ndim; ++axis) bytes *= (size_t)t->shape[axis];
  return bytes;
}

#ifndef CANDIDATE_KERNELS
#define CANDIDATE_KERNELS \
  { "fused_layout", NULL }
/* Six of the 24 smoke cases. */
#define CANDIDATE_MISBEHAVES(op, heads) (strcmp(op, "o_chunk") == 0 && (heads) == 3)
#endif
#ifndef CANDIDATE_WRITES
#define CANDIDATE_WRITES(op) 1
#endif
#ifndef CANDIDATE_ABI_VERSION
#define CANDIDATE_ABI_VERSION KVCTS_ABI_VERSION
#endif

KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void) {
  static const char* const kernels[] = CANDIDATE_KERNELS;
  static kvcts_candidate_info info;
  info.abi_version = CANDIDATE_ABI_VERSION;
  info.struct_bytes = sizeof info;
  info.name = "misbehaving";
  info.version = "1";
  info.device.type = KVCTS_CPU;
  info.kernels = kernels;
#ifdef CANDIDATE_PROFILES
  static const char* const profiles[] = CANDIDATE_PROFILES;
  static const char* const flags[] = CANDIDATE_FLAGS_NOT_CLAIMED;
  info.profiles = profiles;
  info.flags_not_claimed = flags;
#endif
  return &info;
}

KVCTS_EXPORT kvcts_answer kvcts_candidate_run(const kvcts_call* call) {
  kvcts_answer answer = KVCTS_OK;
  const char* op = kvcts_text(call, "op", "");
  if (kvcts_find_tensor(call, "x") != NULL && CANDIDATE_WRITES(op)) write_right_bytes(call);
  if (CANDIDATE_MISBEHAVES(op, kvcts_integer(call, "heads", 0))) {
    answer = misbehave(call);
  }
  return answer;
}
