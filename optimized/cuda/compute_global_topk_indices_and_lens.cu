#include "optimized/cuda/rows.h"
#include "optimized/kernels/compute_global_topk_indices_and_lens.h"

namespace kvcts {
namespace {

template <int Words, bool Aligned>
struct global_topk_body {
  static __device__ __forceinline__ void run(
      const compute_global_topk_indices_and_lens_arguments& a, std::int64_t row) {
    device::global_topk_row<device::group, Words, Aligned>(a, row);
  }
};

// Measured constant: below so many tokens a step of 128 columns has a warp.
constexpr std::int64_t few_rows = 1024;
constexpr int most_steps = 4;

__device__ __forceinline__ device::group::words<4> load_step(
    const compute_global_topk_indices_and_lens_arguments& a, const unsigned char* row, int step) {
  if (step * 128 + static_cast<int>(device::group::lane()) * 4 >= a.columns) {
    return {{device::no_index, device::no_index, device::no_index, device::no_index}};
  }
  return device::group::load_words<4, 32, true>(row + step * 512, 0, 1);
}
// A block a row; the last warp counts.
__global__ void __launch_bounds__(32 * (most_steps + 1))
    few_rows_kernel(const __grid_constant__ compute_global_topk_indices_and_lens_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  const std::int64_t token = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const unsigned char* from = a.topk.start + token * a.topk.row_stride;
  if (warp == most_steps) {
    G::words<4> steps[most_steps];
#pragma unroll
    for (int i = 0; i < most_steps; ++i) steps[i] = load_step(a, from, i);
    const bool valid = a.is_valid[token] != 0;
    std::uint32_t found = 0;
#pragma unroll
    for (int i = 0; i < most_steps; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) found += device::live_index<G>(steps[i].w[j]);
    }
    const std::uint32_t count = device::total<G>(found);
    device::store_scalar<G, true>(a.lens + token * 4, valid ? count : 0);
    return;
  }
  G::words<4> ids = load_step(a, from, warp);
  const std::int64_t request = G::load_i32<true>(a.requests + token * 4);
  const unsigned char* pages = a.table.start + request * a.table.row_stride;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    ids.w[j] = device::slot_of_entry<G, true, false>(pages, ids.w[j], a.block, a.block.size);
  }
  if (warp * 128 + static_cast<int>(G::lane()) * 4 < a.columns) {
    G::store_words<4, 32, true>(a.global + token * a.columns * 4 + warp * 512, 0, 1, ids);
  }
}

// Rows of indices begin at multiples of `bytes`, everything else at multiples of 4.
bool is_aligned(const compute_global_topk_indices_and_lens_arguments& a, std::int64_t bytes) {
  return is_multiple(a.topk, bytes) && is_multiple(a.global, bytes) &&
         is_multiple(a.columns * 4, bytes) && is_multiple(a.table, 4) &&
         is_multiple(a.requests, 4) && is_multiple(a.lens, 4);
}

}  // namespace

void launch_compute_global_topk_indices_and_lens(
    const compute_global_topk_indices_and_lens_arguments& a, profile /*p*/, cudaStream_t stream) {
  constexpr auto name = "compute_global_topk_indices_and_lens";
  if (a.tokens == 0) return;
  if (is_aligned(a, 16) && a.columns <= most_steps * 128 && a.tokens < few_rows) {
    launch_kernel(few_rows_kernel, static_cast<unsigned>(a.tokens), 32 * (most_steps + 1), stream,
                  name, a);
  } else if (is_aligned(a, 16)) {
    launch_rows<global_topk_body<4, true>>(a, a.tokens, stream, name);
  } else if (is_aligned(a, 4)) {
    launch_rows<global_topk_body<1, true>>(a, a.tokens, stream, name);
  } else {
    launch_rows<global_topk_body<1, false>>(a, a.tokens, stream, name);
  }
}

}  // namespace kvcts
