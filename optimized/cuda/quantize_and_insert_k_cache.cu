#include <algorithm>

#include "optimized/cuda/launch.h"
#include "optimized/kernels/quantize_and_insert_k_cache.h"

namespace kvcts {
namespace {

constexpr int block_warps = 4;

// Rows in flight a warp, of more than spread_rows; others have one.
constexpr int batch_rows = 2;

template <profile P, int Bytes, bool Fnuz, bool Aligned, int Rows>
__global__ void __launch_bounds__(32 * block_warps)
    quantize_and_insert_kernel(const __grid_constant__ quantize_and_insert_k_cache_arguments a) {
  wait_for_earlier_kernel();
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32;
  const std::int64_t rows_a_grid = static_cast<std::int64_t>(gridDim.x) * block_warps * Rows;
  for (std::int64_t row = warp * Rows; row < a.rows; row += rows_a_grid) {
    device::insert_key_rows<device::group, P, Bytes, Fnuz, Aligned, Rows>(a, row);
  }
}

bool is_aligned(const quantize_and_insert_k_cache_arguments& a) {
  return is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) && is_multiple(a.slots, 8) &&
         is_multiple(a.cache.start, 8) && is_multiple(a.cache.page_stride, 8);
}

template <profile P, int Bytes, bool Fnuz>
void launch(const quantize_and_insert_k_cache_arguments& a, cudaStream_t stream) {
  const bool aligned = is_aligned(a);
  const int rows = aligned && a.rows > spread_rows ? batch_rows : 1;
  const auto kernel = !aligned    ? quantize_and_insert_kernel<P, Bytes, Fnuz, false, 1>
                      : rows == 1 ? quantize_and_insert_kernel<P, Bytes, Fnuz, true, 1>
                                  : quantize_and_insert_kernel<P, Bytes, Fnuz, true, batch_rows>;
  const std::int64_t block_rows = static_cast<std::int64_t>(block_warps) * rows;
  const auto blocks =
      static_cast<unsigned>(std::min((a.rows + block_rows - 1) / block_rows, largest_grid));
  launch_kernel(kernel, blocks, 32 * block_warps, stream, "quantize_and_insert_k_cache", a);
}

template <profile P>
void launch(const quantize_and_insert_k_cache_arguments& a, cudaStream_t stream) {
  if (a.bytes_per_token == 584) {
    (a.fnuz ? launch<P, 584, true> : launch<P, 584, false>)(a, stream);
  } else {
    (a.fnuz ? launch<P, 528, true> : launch<P, 528, false>)(a, stream);
  }
}

}  // namespace

void launch_quantize_and_insert_k_cache(const quantize_and_insert_k_cache_arguments& a, profile p,
                                        cudaStream_t stream) {
  if (a.rows == 0) return;
  (p == profile::nvidia ? launch<profile::nvidia> : launch<profile::ieee>)(a, stream);
}

}  // namespace kvcts
