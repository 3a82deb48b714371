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

}  // namespace kvcts
