#include <algorithm>

#include "optimized/cuda/launch.h"
#include "optimized/kernels/indexer_k_norm_rope_store.h"

namespace kvcts {
namespace {

constexpr int block_warps = 4;

KVCTS_INLINE device::group_row row_in_lane(const device::group_row& r, int lane) {
  return {__shfl_sync(0xFFFFFFFFu, r.row, lane), __shfl_sync(0xFFFFFFFFu, r.slot, lane),
          __shfl_sync(0xFFFFFFFFu, r.position, lane)};
}

// A warp takes the live ones of rows_a_warp rows by twos.
template <profile P, bool Mxfp4, bool Aligned>
__global__ void __launch_bounds__(32 * block_warps)
    store_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a, int rows_a_warp) {
  using G = device::group;
  const auto weights = device::load_key_weights<G, Aligned>(a);
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * block_warps;
  for (std::int64_t task = static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32;
       task * rows_a_warp < a.at.rows; task += warps) {
    const std::int64_t row = task * rows_a_warp + G::lane();
    device::group_row mine = {};
    const bool live = G::lane() < rows_a_warp && row < a.at.rows &&
                      device::load_group_row<G, Aligned>(a.at, row, mine);
    unsigned waiting = __ballot_sync(0xFFFFFFFFu, live);
    while (waiting != 0) {
      const int one = __ffs(waiting) - 1;
      waiting &= waiting - 1;
      const int keys = waiting != 0 ? 2 : 1;
      const int two = waiting != 0 ? __ffs(waiting) - 1 : one;
      waiting &= waiting - 1;  // stays 0
      device::store_keys<G, P, Mxfp4, Aligned>(a, weights, row_in_lane(mine, one),
                                               row_in_lane(mine, two), keys);
    }
  }
}

bool is_aligned(const indexer_k_norm_rope_store_arguments& a) {
  return is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) && is_multiple(a.at.slots, 8) &&
         is_multiple(a.at.positions, 8) && is_multiple(a.table.start, 16) &&
         is_multiple(a.table.stride, 16) && is_multiple(a.weight, 16) &&
         is_multiple(a.cache.start, 8) && is_multiple(a.cache.page_stride, 8);
}

template <profile P, bool Mxfp4>
auto kernel_for(bool aligned) {
  return aligned ? store_kernel<P, Mxfp4, true> : store_kernel<P, Mxfp4, false>;
}
template <profile P>
auto kernel_for(const indexer_k_norm_rope_store_arguments& a) {
  return a.mxfp4 ? kernel_for<P, true>(is_aligned(a)) : kernel_for<P, false>(is_aligned(a));
}

}  // namespace

void launch_indexer_k_norm_rope_store(const indexer_k_norm_rope_store_arguments& a, profile p,
                                      cudaStream_t stream) {
  if (a.at.rows == 0) return;
  const int rows_a_warp = 2 * a.at.ratio;  // two live ones, where the positions follow each other
  const std::int64_t rows_a_block = rows_a_warp * block_warps;
  const auto blocks =
      static_cast<unsigned>(std::min((a.at.rows + rows_a_block - 1) / rows_a_block, largest_grid));
  const auto kernel =
      p == profile::nvidia ? kernel_for<profile::nvidia>(a) : kernel_for<profile::ieee>(a);
  kernel<<<blocks, 32 * block_warps, 0, stream>>>(a, rows_a_warp);
  cuda_check(cudaGetLastError(), "indexer_k_norm_rope_store");
}

}  // namespace kvcts
