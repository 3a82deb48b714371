// A grid of warps that share out the heads of tokens.
#pragma once

#include <algorithm>

#include "optimized/cuda/launch.h"

namespace kvcts {

// Body::run(arguments, token, head) is a __device__ function that 32 lanes call together; it does
// Body::heads_a_warp heads. threadIdx.y: token; the warps along x share its heads.
constexpr int heads_block_warps = 8;  // at most

template <class Body, class Arguments>
__global__ void __launch_bounds__(32 * heads_block_warps, 3)  // up to 80 registers
    heads_kernel(const __grid_constant__ Arguments a) {
  wait_for_earlier_kernel();
  const std::int64_t tokens_a_grid = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       token < a.tokens; token += tokens_a_grid) {
    for (std::int64_t head = threadIdx.x / 32 * Body::heads_a_warp; head < a.heads;
         head += blockDim.x / 32 * Body::heads_a_warp) {
      Body::run(a, token, head);
    }
  }
}

template <class Body, class Arguments>
void launch_heads(const Arguments& a, cudaStream_t stream, const char* kernel) {
  if (a.tokens == 0 || a.heads == 0) return;
  const std::int64_t needed = (a.heads + Body::heads_a_warp - 1) / Body::heads_a_warp;
  const auto warps = static_cast<unsigned>(std::min<std::int64_t>(needed, heads_block_warps));
  const unsigned tokens = std::max(1u, 4 / warps);  // at least 4 warps a block
  const auto blocks =
      static_cast<unsigned>(std::min((a.tokens + tokens - 1) / tokens, largest_grid));
  launch_kernel(heads_kernel<Body, Arguments>, blocks, dim3(32 * warps, tokens), stream, kernel, a);
}

// The same without a loop over heads, so that few rows of many heads spread over the device. A row
// is Body::tokens_a_warp tokens: Body::run(arguments, token, head) with the first of each.
constexpr std::int64_t largest_grid_y = 65535;

template <class Body, class Arguments>
__global__ void __launch_bounds__(32 * heads_block_warps, Body::blocks_at_once)
    spread_heads_kernel(const __grid_constant__ Arguments a) {
  wait_for_earlier_kernel();
  const std::int64_t head =
      (static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32) *
      Body::heads_a_warp;
  if (head >= a.heads) return;
  for (std::int64_t token = static_cast<std::int64_t>(blockIdx.y) * Body::tokens_a_warp;
       token < a.tokens; token += static_cast<std::int64_t>(gridDim.y) * Body::tokens_a_warp) {
    Body::run(a, token, head);
  }
}

// Where there is at most this many warps' work, a block is one warp.
constexpr std::int64_t few_warps = 2048;

template <class Body, class Arguments>
void launch_spread_heads(const Arguments& a, cudaStream_t stream, const char* kernel) {
  if (a.tokens == 0 || a.heads == 0) return;
  const std::int64_t across = (a.heads + Body::heads_a_warp - 1) / Body::heads_a_warp;
  const std::int64_t rows = (a.tokens + Body::tokens_a_warp - 1) / Body::tokens_a_warp;
  const std::int64_t warps =
      across * rows <= few_warps ? 1 : std::min<std::int64_t>(across, heads_block_warps);
  const dim3 grid(static_cast<unsigned>(std::min((across + warps - 1) / warps, largest_grid)),
                  static_cast<unsigned>(std::min(rows, largest_grid_y)));
  launch_kernel(spread_heads_kernel<Body, Arguments>, grid, static_cast<unsigned>(32 * warps),
                stream, kernel, a);
}

}  // namespace kvcts
