// Host side of the CUDA kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "optimized/arguments/all.h"
#include "reference/numerics/rules.h"  // the profile's name only

namespace kvcts {

// Queue the kernel on the stream. The arguments are addresses on the device.
#define KVCTS_KERNEL(K) void launch_##K(const K##_arguments& a, profile p, cudaStream_t stream);
#include "optimized/kernels.def"
#undef KVCTS_KERNEL

inline void cuda_check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that no later check meets it
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(status) + ": " +
                           cudaGetErrorString(status));
}

// The address or stride is a multiple of `bytes`; of a matrix, both.
inline bool is_multiple(const void* address, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(bytes) == 0;
}
inline bool is_multiple(std::int64_t stride, std::int64_t bytes) { return stride % bytes == 0; }
inline bool is_multiple(const index_matrix& m, std::int64_t bytes) {
  return is_multiple(m.start, bytes) && is_multiple(m.row_stride, bytes);
}

constexpr std::int64_t largest_grid = 0x7FFFFFFF;

// Up to this many rows, a warp has one; of more, several in flight. These are 8 warps on each of
// the 132 multiprocessors of an H200, and what bounds so few is the time from a load to the next.
constexpr std::int64_t spread_rows = 132 * 8;

// A kernel's launch need not wait until the one before it on the stream has ended (programmatic
// dependent launch): its blocks start where there is room once all blocks of the other have begun,
// and wait here until what the other wrote can be read. Every kernel of launch_kernel begins so,
// and none has loads that may move before it (load_global). A dependent kernel of somebody else's
// behind ours must wait as well before it touches anything written earlier on the stream.
#ifdef __CUDACC__
__device__ __forceinline__ void wait_for_earlier_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

// Whether the current device runs code for 9.0 and later, which has that beginning and bulk copies.
// It is compiled for no earlier device.
inline bool runs_code_for_9_0() {
  int device = 0;
  int major = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "compute capability");
  return major >= 9;
}

template <class... Parameters, class... Arguments>
void launch_shared(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                   std::size_t shared_bytes, cudaStream_t stream, const char* name,
                   const Arguments&... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = runs_code_for_9_0() ? 1 : 0;
  cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}
template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, cudaStream_t stream,
                   const char* name, const Arguments&... arguments) {
  launch_shared(kernel, blocks, threads, 0, stream, name, arguments...);
}

}  // namespace kvcts
