#include <algorithm>

#include "optimized/cuda/launch.h"
#include "optimized/kernels/quantize_and_insert_k_cache.h"

namespace kvcts {
namespace {

constexpr int rows_a_warp = 2;  // in flight
constexpr int block_warps = 4;
constexpr int rows_a_block = rows_a_warp * block_warps;

template <profile P, int Bytes, bool Fnuz, bool Aligned>
__global__ void __launch_bounds__(32 * block_warps)
    quantize_and_insert_kernel(const __grid_constant__ quantize_and_insert_k_cache_arguments a) {
  wait_for_earlier_kernel();
  const std::int64_t rows_a_grid = static_cast<std::int64_t>(gridDim.x) * rows_a_block;
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * rows_a_block + threadIdx.x / 32 * rows_a_warp;
       row < a.rows; row += rows_a_grid) {
    device::insert_key_rows<device::group, P, Bytes, Fnuz, Aligned, rows_a_warp>(a, row);
  }
}

bool is_aligned(const quantize_and_insert_k_cache_arguments& a) {
  return is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) && is_multiple(a.slots, 8) &&
         is_multiple(a.cache.start, 8) && is_multiple(a.cache.page_stride, 8);
}

template <profile P, int Bytes, bool Fnuz>
auto kernel_for(bool aligned) {
  return aligned ? quantize_and_insert_kernel<P, Bytes, Fnuz, true>
                 : quantize_and_insert_kernel<P, Bytes, Fnuz, false>;
}

template <profile P>
auto kernel_for(const quantize_and_insert_k_cache_arguments& a) {
  const bool aligned = is_aligned(a);
  if (a.bytes_per_token == 584) {
    return a.fnuz ? kernel_for<P, 584, true>(aligned) : kernel_for<P, 584, false>(aligned);
  }
  return a.fnuz ? kernel_for<P, 528, true>(aligned) : kernel_for<P, 528, false>(aligned);
}

}  // namespace

void launch_quantize_and_insert_k_cache(const quantize_and_insert_k_cache_arguments& a, profile p,
                                        cudaStream_t stream) {
  if (a.rows == 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min((a.rows + rows_a_block - 1) / rows_a_block, largest_grid));
  const auto kernel =
      p == profile::nvidia ? kernel_for<profile::nvidia>(a) : kernel_for<profile::ieee>(a);
  launch_kernel(kernel, blocks, 32 * block_warps, stream, "quantize_and_insert_k_cache", a);
}

}  // namespace kvcts
