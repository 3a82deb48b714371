#include <algorithm>

#include "optimized/cuda/launch.h"
#include "optimized/kernels/mxfp4_q_quant.h"

namespace kvcts {
namespace {

constexpr int strips = 4;  // in flight a warp
constexpr int heads_a_warp = 2 * strips;
constexpr int block_warps = 8;  // at most

// threadIdx.y: token; the warps along x share its heads.
template <profile P, bool Aligned>
__global__ void __launch_bounds__(32 * block_warps)
    mxfp4_q_quant_kernel(const __grid_constant__ mxfp4_q_quant_arguments a) {
  using G = device::group;
  const std::int64_t tokens_a_grid = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       token < a.tokens; token += tokens_a_grid) {
    for (std::int64_t head = threadIdx.x / 32 * heads_a_warp; head < a.padded_heads;
         head += blockDim.x / 32 * heads_a_warp) {
      device::mxfp4_quantize_heads<G, P, Aligned, strips>(a, token, head);
      device::mxfp4_scale_weights<G, Aligned>(a, token, head, heads_a_warp);
    }
  }
}

bool is_aligned(const mxfp4_q_quant_arguments& a) {
  const std::int64_t weight_bytes = a.weights_are_f32 ? 4 : 2;
  return is_multiple(a.q, 16) && is_multiple(a.q_token_stride, 16) &&
         is_multiple(a.q_head_stride, 16) && is_multiple(a.index_weights, weight_bytes) &&
         is_multiple(a.weights_token_stride, weight_bytes) && is_multiple(a.q_packed, 4) &&
         is_multiple(a.weights, 4);
}

template <profile P>
auto kernel_for(bool aligned) {
  return aligned ? mxfp4_q_quant_kernel<P, true> : mxfp4_q_quant_kernel<P, false>;
}

}  // namespace

void launch_mxfp4_q_quant(const mxfp4_q_quant_arguments& a, profile p, cudaStream_t stream) {
  if (a.tokens == 0 || a.padded_heads == 0) return;
  const std::int64_t needed = (a.padded_heads + heads_a_warp - 1) / heads_a_warp;
  const auto warps = static_cast<unsigned>(std::min<std::int64_t>(needed, block_warps));
  const unsigned tokens = std::max(1u, 4 / warps);  // at least 4 warps a block
  const auto blocks =
      static_cast<unsigned>(std::min((a.tokens + tokens - 1) / tokens, largest_grid));
  const auto kernel = p == profile::nvidia ? kernel_for<profile::nvidia>(is_aligned(a))
                                           : kernel_for<profile::ieee>(is_aligned(a));
  kernel<<<blocks, dim3(32 * warps, tokens), 0, stream>>>(a);
  cuda_check(cudaGetLastError(), "mxfp4_q_quant");
}

}  // namespace kvcts
