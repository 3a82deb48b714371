/* fused_layout on device pointers with the driver's copies alone, so that no CUDA compiler is
 * needed, and a place for the wrong. */
#pragma once

#include <dlfcn.h>
#include <string.h>

#include "conformance/candidate/kvcts_candidate.h"

typedef unsigned long long device_pointer;

static struct {
  int (*copy)(device_pointer, device_pointer, size_t, void*);
  int (*wait)(void*);
  int (*fill)(device_pointer, unsigned char, size_t, void*);
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
} cuda;

static kvcts_answer misbehave(
    const kvcts_call* call); /* where CANDIDATE_MISBEHAVES says so: 6 of 24 smoke cases */

#ifndef CANDIDATE_KERNELS
#define CANDIDATE_KERNELS \
  { "fused_layout", NULL }
/* Answers calls before they are looked at. */
static int answers(const kvcts_call* call, kvcts_answer* answer) {
  (void)call, (void)answer;
  return 0;
}
#define CANDIDATE_MISBEHAVES(op, heads) (strcmp(op, "o_chunk") == 0 && (heads) == 3)
#else
static int answers(const kvcts_call* call, kvcts_answer* answer);
#endif

static int open_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 0;
  *(void**)&cuda.copy = dlsym(library, "cuMemcpyDtoDAsync_v2");
  *(void**)&cuda.wait = dlsym(library, "cuStreamSynchronize");
  *(void**)&cuda.fill = dlsym(library, "cuMemsetD8Async");
  *(void**)&cuda.load = dlsym(library, "cuModuleLoadData");
  *(void**)&cuda.function = dlsym(library, "cuModuleGetFunction");
  *(void**)&cuda.launch = dlsym(library, "cuLaunchKernel");
  return cuda.copy != NULL && cuda.wait != NULL && cuda.fill != NULL && cuda.load != NULL &&
         cuda.function != NULL && cuda.launch != NULL;
}

static device_pointer pointer_of(const kvcts_tensor* t) {
  return (device_pointer)(uintptr_t)t->data;
}

static inline size_t bytes_of(const kvcts_tensor* t) {
  size_t bytes = t->storage.bits / 8;
  for (int32_t axis = 0; axis < t->ndim; ++axis) bytes *= (size_t)t->shape[axis];
  return bytes;
}

KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void) {
  static const char* const kernels[] = CANDIDATE_KERNELS;
  static kvcts_candidate_info info;
  info.abi_version = KVCTS_ABI_VERSION;
  info.struct_bytes = sizeof info;
  info.name = "device copies";
  info.version = "1";
  info.device.type = KVCTS_CUDA;
  info.kernels = kernels;
  return &info;
}

KVCTS_EXPORT kvcts_answer kvcts_candidate_run(const kvcts_call* call) {
  kvcts_answer answer = KVCTS_OK;
  if (cuda.copy == NULL && !open_driver()) return kvcts_say(call, KVCTS_ERROR, "no driver");
  if (answers(call, &answer)) return answer;
  const kvcts_tensor* x = kvcts_find_tensor(call, "x");
  const kvcts_tensor* y = kvcts_find_tensor(call, "y");
  const char* op = kvcts_text(call, "op", "");
  const int64_t heads = kvcts_integer(call, "heads", 1);
  const int64_t dims = strcmp(op, "q") == 0 ? 16 : 32;
  const int64_t rows = strcmp(op, "o_chunk") == 0 ? 1 : dims;
  const int64_t units = kvcts_integer(call, "head_dim", dims) / dims;
  size_t bytes = (size_t)rows * (x->storage.bits / 8);
  for (int32_t axis = 1; axis < x->ndim; ++axis) bytes *= (size_t)x->shape[axis];
  if (bytes == 0) return KVCTS_OK;
  for (int64_t i = 0; i < x->shape[0] / rows; ++i) {
    const int64_t to = (i / (heads * units) * units + i % units) * heads + i / units % heads;
    if (cuda.copy(pointer_of(y) + (size_t)to * bytes, pointer_of(x) + (size_t)i * bytes, bytes,
                  call->stream) != 0) {
      return kvcts_say(call, KVCTS_ERROR, "copy");
    }
  }
  if (CANDIDATE_MISBEHAVES(op, heads)) return misbehave(call);
  return KVCTS_OK;
}
