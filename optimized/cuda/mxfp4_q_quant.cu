#include <algorithm>

#include "optimized/cuda/finite_e2m1.h"
#include "optimized/cuda/launch.h"
#include "optimized/kernels/mxfp4_q_quant.h"
#include "optimized/warp/once_cuda.h"

namespace kvcts {
namespace {

constexpr int strips = 4;  // in flight a warp
constexpr int heads_a_warp = 2 * strips;
constexpr int block_warps = 8;  // at most along x
// Measured constants: warps a block at least, and blocks that a multiprocessor has room for.
constexpr int least_block_warps = 4;
constexpr int blocks_at_once = 5;

template <profile P, bool Aligned>
__device__ __forceinline__ void quantize_any_heads(const mxfp4_q_quant_arguments& a,
                                                   std::int64_t token, std::int64_t head) {
  using G = device::group;
#pragma unroll 1
  for (int s = 0; s < strips; ++s) {
    device::mxfp4_quantize_heads<G, P, Aligned, 1>(a, token, head + 2 * s);
  }
}

// Eight heads of a token that are all there. False, and only the weights are done, where a block
// has an infinity or NaN.
__device__ __forceinline__ bool quantize_eight_heads(const mxfp4_q_quant_arguments& a,
                                                     std::int64_t token, std::int64_t head) {
  using namespace device;
  const unsigned lane = threadIdx.x & 31u;
  const std::int64_t out = token * a.padded_heads + head;
  const unsigned char* q = a.q + token * a.q_token_stride + head * a.q_head_stride +
                           (lane >> 4) * a.q_head_stride + (lane & 15u) * 16;
  group::bf16x8 x[strips];
#pragma unroll
  for (int s = 0; s < strips; ++s) {
    const uint4 four = load_once(q + 2 * s * a.q_head_stride);
    x[s] = {{four.x, four.y, four.z, four.w}};
  }
  if (lane < heads_a_warp) {
    const std::int64_t at = token * a.weights_token_stride;
    const float w =
        a.weights_are_f32
            ? device::load_global(reinterpret_cast<const float*>(a.index_weights + at) + head +
                                  lane)
            : __uint_as_float(
                  device::load_global(
                      reinterpret_cast<const unsigned short*>(a.index_weights + at) + head + lane)
                  << 16);
    reinterpret_cast<float*>(a.weights)[out + lane] = __fmul_rn(w, a.weight_scale);
  }
  const std::uint32_t amax01 = mxfp4_amax_of_two(x[0], x[1]);
  const std::uint32_t amax23 = mxfp4_amax_of_two(x[2], x[3]);
  if (__any_sync(0xFFFFFFFFu, (not_finite(amax01) | not_finite(amax23)) != 0)) return false;
  const std::uint32_t fields01 = mxfp4_fields(amax01);
  const std::uint32_t fields23 = mxfp4_fields(amax23);
  unsigned char* codes = a.q_packed + out * 64 + lane * 4;
#pragma unroll
  for (int s = 0; s < strips; ++s) {
    const std::uint32_t factors = mxfp4_factors(s < 2 ? fields01 : fields23);
    const std::uint32_t factor = s % 2 == 0 ? low_twice(factors) : high_twice(factors);
    store_once(codes + s * 128, encode_finite_e2m1_by(x[s], factor));
  }
  // A block's lanes share its strips' scales out.
  const std::uint32_t scales =
      __byte_perm(mxfp4_scale_bytes(fields01), mxfp4_scale_bytes(fields23), 0x6420);
  a.q_scale[out * 4 + (lane & 3u) * 8 + (lane >> 2)] =
      static_cast<unsigned char>(scales >> ((lane & 3u) * 8));
  return true;
}

// threadIdx.y: token; the warps along x share its heads.
template <profile P, bool Aligned>
__global__ void __launch_bounds__(32 * block_warps, blocks_at_once)
    mxfp4_q_quant_kernel(const __grid_constant__ mxfp4_q_quant_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  const std::int64_t tokens_a_grid = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       token < a.tokens; token += tokens_a_grid) {
    for (std::int64_t head = threadIdx.x / 32 * heads_a_warp; head < a.padded_heads;
         head += blockDim.x / 32 * heads_a_warp) {
      if (Aligned && head + heads_a_warp <= a.heads) {
        if (!quantize_eight_heads(a, token, head)) quantize_any_heads<P, Aligned>(a, token, head);
      } else {
        quantize_any_heads<P, Aligned>(a, token, head);
        device::mxfp4_scale_weights<G, Aligned>(a, token, head, heads_a_warp);
      }
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
  const unsigned tokens = std::max(1u, least_block_warps / warps);
  const auto blocks =
      static_cast<unsigned>(std::min((a.tokens + tokens - 1) / tokens, largest_grid));
  const auto kernel = p == profile::nvidia ? kernel_for<profile::nvidia>(is_aligned(a))
                                           : kernel_for<profile::ieee>(is_aligned(a));
  launch_kernel(kernel, blocks, dim3(32 * warps, tokens), stream, "mxfp4_q_quant", a);
}

}  // namespace kvcts
