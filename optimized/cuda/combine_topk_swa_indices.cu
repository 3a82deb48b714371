#include "optimized/cuda/rows.h"
#include "optimized/kernels/combine_topk_swa_indices.h"

namespace kvcts {
namespace {

template <int Words, bool Aligned>
struct combine_body {
  static __device__ __forceinline__ void run(const combine_topk_swa_indices_arguments& a,
                                             std::int64_t row) {
    device::combine_row<device::group, Words, Aligned>(a, row);
  }
};

// Measured constant: below so many tokens a step of 128 columns has a warp.
constexpr std::int64_t few_rows = 1024;
constexpr int most_steps = 8;

__device__ __forceinline__ std::uint32_t id_of_column(const combine_topk_swa_indices_arguments& a,
                                                      const device::combined_row& row,
                                                      std::uint32_t column, std::uint32_t entry) {
  std::uint32_t id = device::no_index;
  if (column < row.topk) {  // negative entries are above every N
    if (entry < static_cast<std::uint32_t>(a.compressed)) id = entry + row.first;
  } else if (column < row.columns) {
    id = column + row.first_window;
  }
  return id;
}

// A block a row, which is whole steps. The entries' load waits for nothing but the token.
__global__ void __launch_bounds__(32 * most_steps)
    few_rows_kernel(const __grid_constant__ combine_topk_swa_indices_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  const std::int64_t token = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::uint32_t column = threadIdx.x * 4;
  G::words<4> ids = {};
  if (column < a.topk_columns) {
    ids = G::load_words<4, 32, true>(a.topk.start + token * a.topk.row_stride + warp * 512, 0, 1);
  }
  const device::combined_row row = device::combined_row_of<G, true>(a, token);
#pragma unroll
  for (int j = 0; j < 4; ++j) ids.w[j] = id_of_column(a, row, column + j, ids.w[j]);
  G::store_words<4, 32, true>(a.combined + token * a.columns * 4 + warp * 512, 0, 1, ids);
  if (warp == 0) device::store_scalar<G, true>(a.lens + token * 4, row.columns);
}
bool is_few(const combine_topk_swa_indices_arguments& a) {
  return a.tokens < few_rows && a.columns % 128 == 0 && a.columns > 0 &&
         a.columns <= most_steps * 128 && a.topk_columns % 4 == 0;
}

// Rows of indices begin at multiples of `bytes`, everything else at multiples of 4.
bool is_aligned(const combine_topk_swa_indices_arguments& a, std::int64_t bytes) {
  return is_multiple(a.topk, bytes) && is_multiple(a.combined, bytes) &&  // rows of 512 bytes
         is_multiple(a.starts, 4) && is_multiple(a.seq_lens, 4) && is_multiple(a.gather_lens, 4) &&
         is_multiple(a.lens, 4);
}

}  // namespace

void launch_combine_topk_swa_indices(const combine_topk_swa_indices_arguments& a, profile /*p*/,
                                     cudaStream_t stream) {
  constexpr auto name = "combine_topk_swa_indices";
  if (a.tokens == 0) return;
  if (is_aligned(a, 16) && is_few(a)) {
    launch_kernel(few_rows_kernel, static_cast<unsigned>(a.tokens),
                  static_cast<unsigned>(a.columns / 4), stream, name, a);
  } else if (is_aligned(a, 16)) {
    launch_rows<combine_body<4, true>>(a, a.tokens, stream, name);
  } else if (is_aligned(a, 4)) {
    launch_rows<combine_body<1, true>>(a, a.tokens, stream, name);
  } else {
    launch_rows<combine_body<1, false>>(a, a.tokens, stream, name);
  }
}

}  // namespace kvcts
