// A grid of warps that share rows out: for kernels in which a warp does a row.
#pragma once

#include <algorithm>

#include "optimized/cuda/launch.h"

namespace kvcts {

// Body::run(arguments, row) is a __device__ function that 32 lanes call together.
template <class Body, int BlockWarps, class Arguments>
__global__ void __launch_bounds__(32 * BlockWarps)
    rows_kernel(const __grid_constant__ Arguments a, std::int64_t rows) {
  wait_for_earlier_kernel();
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
  launch_kernel(rows_kernel<Body, BlockWarps, Arguments>, blocks, 32 * BlockWarps, stream, kernel,
                a, rows);
}

// The same where a row is `Tasks` independent ones, a warp each: Body::run(arguments, row, task). A
// block has the tasks of BlockRows rows.
template <class Body, int Tasks, int BlockRows, class Arguments>
__global__ void __launch_bounds__(32 * Tasks * BlockRows)
    tasks_kernel(const __grid_constant__ Arguments a, std::int64_t rows) {
  wait_for_earlier_kernel();
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t rows_a_grid = static_cast<std::int64_t>(gridDim.x) * BlockRows;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * BlockRows + warp / Tasks;
       row < rows; row += rows_a_grid) {
    Body::run(a, row, warp % Tasks);
  }
}

template <class Body, int Tasks, int BlockRows, class Arguments>
void launch_tasks(const Arguments& a, std::int64_t rows, cudaStream_t stream, const char* kernel) {
  if (rows <= 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min((rows + BlockRows - 1) / BlockRows, largest_grid));
  launch_kernel(tasks_kernel<Body, Tasks, BlockRows, Arguments>, blocks, 32 * Tasks * BlockRows,
                stream, kernel, a, rows);
}

}  // namespace kvcts
