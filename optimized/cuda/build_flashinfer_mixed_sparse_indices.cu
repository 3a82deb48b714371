#include "optimized/cuda/rows.h"
#include "optimized/kernels/build_flashinfer_mixed_sparse_indices.h"

namespace kvcts {
namespace {

template <int Words, bool Aligned>
struct sparse_body {
  static __device__ __forceinline__ void run(
      const build_flashinfer_mixed_sparse_indices_arguments& a, std::int64_t row, int task) {
    device::sparse_row<device::group, Words, Aligned>(a, row, task == 0, task != 0);
  }
};
constexpr int block_rows = 2;

// Rows of indices begin at multiples of `bytes`, everything else at multiples of 4.
bool is_aligned(const build_flashinfer_mixed_sparse_indices_arguments& a, std::int64_t bytes) {
  return is_multiple(a.decode_window, bytes) && is_multiple(a.decode_compressed, bytes) &&
         is_multiple(a.prefill_topk, bytes) && is_multiple(a.indices, bytes) &&
         is_multiple(a.window_columns * 4, bytes) &&  // and so the rows, in whole fours behind
         is_multiple(a.window_pages.table, 4) && is_multiple(a.compressed_pages.table, 4) &&
         is_multiple(a.decode_lens, 4) && is_multiple(a.starts, 4) && is_multiple(a.seq_lens, 4) &&
         is_multiple(a.token_to_request, 4) && is_multiple(a.replay_start, 4) &&
         is_multiple(a.lens, 4);
}

}  // namespace

void launch_build_flashinfer_mixed_sparse_indices(
    const build_flashinfer_mixed_sparse_indices_arguments& a, profile /*p*/, cudaStream_t stream) {
  constexpr auto name = "build_flashinfer_mixed_sparse_indices";
  if (is_aligned(a, 16)) {
    launch_tasks<sparse_body<4, true>, 2, block_rows>(a, a.tokens, stream, name);
  } else if (is_aligned(a, 4)) {
    launch_tasks<sparse_body<1, true>, 2, block_rows>(a, a.tokens, stream, name);
  } else {
    launch_tasks<sparse_body<1, false>, 2, block_rows>(a, a.tokens, stream, name);
  }
}

}  // namespace kvcts
