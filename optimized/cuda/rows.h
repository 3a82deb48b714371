// A grid of warps that share rows out: for kernels in which a warp does a row.
#pragma once

#include <algorithm>

#include "optimized/cuda/launch.h"

namespace kvcts {

// Body::run(arguments, row) is a __device__ function that 32 lanes call together.
template <class Body, int BlockWarps, class Arguments>
__global__ void __launch_bounds__(32 * BlockWarps)
    rows_kernel(const __grid_constant__ Arguments a, std::int64_t rows) {
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * BlockWarps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * BlockWarps + threadIdx.x / 32;
       row < rows; row += warps) {
    Body::run(a, row);
  }
}

template <class Body, int BlockWarps = 4, class Arguments>
void launch_rows(const Arguments& a, std::int64_t rows, cudaStream_t stream, const char* kernel) {
  if (rows <= 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min((rows + BlockWarps - 1) / BlockWarps, largest_grid));
  rows_kernel<Body, BlockWarps><<<blocks, 32 * BlockWarps, 0, stream>>>(a, rows);
  cuda_check(cudaGetLastError(), kernel);
}

}  // namespace kvcts
