// Launches of the kernels that insert keys.
#pragma once

#include "optimized/cuda/norms.h"
#include "optimized/kernels/key_insert.h"

namespace kvcts {

inline bool is_aligned(const page_view& pages) {
  return is_multiple(pages.start, 4) && is_multiple(pages.page_stride, 4);
}

// What insert_key asks for where it is fast. Absent caches hold no rows.
inline bool key_insert_is_fast(const indexer_keys& a) {
  if (a.rows == 0) return true;
  return a.norm.dims == 128 && is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) &&
         is_multiple(a.slots, 8) && is_aligned(a.weight) && is_aligned(a.bias) &&
         is_aligned(a.cache);
}

template <device::indexer_record Record>
struct any_key_body {
  static __device__ void run(const with_profile<key_insert_arguments>& a, std::int64_t row,
                             int task) {
    using G = device::group;
    if (task == 0) {
      device::insert_key<G, Record, false>(a.of.keys, row, a.rules);
    } else {
      device::fill_topk_row<G>(a.of.topk, row);
    }
  }
};

// A warp a key, in the first insert_blocks blocks, and a warp a top-k row in those behind: keys
// wait for memory, and stores of rows that need nothing fill the time. (Side by side in a block:
// 0.90 of a copy; in turn, block by block: 0.90; so: 0.96.)
constexpr int key_block_warps = 4;

template <device::indexer_record Record>
__global__ void __launch_bounds__(32 * key_block_warps)
    key_insert_kernel(const __grid_constant__ with_profile<key_insert_arguments> a,
                      std::int64_t insert_blocks) {
  wait_for_earlier_kernel();
  using G = device::group;
  const std::int64_t block = blockIdx.x;
  const bool inserts = block < insert_blocks;
  const std::int64_t row =
      (inserts ? block : block - insert_blocks) * key_block_warps + threadIdx.x / 32;
  if (row >= a.of.tokens) return;
  if (inserts) {
    device::insert_key<G, Record, true>(a.of.keys, row, a.rules);
  } else {
    device::fill_topk_row<G>(a.of.topk, row);
  }
}

template <device::indexer_record Record>
void launch_key_insert(const key_insert_arguments& a, profile p, cudaStream_t stream,
                       const char* kernel) {
  const with_profile<key_insert_arguments> both = {a, p};
  const std::int64_t blocks = (a.tokens + key_block_warps - 1) / key_block_warps;
  if (blocks == 0) return;
  if (!key_insert_is_fast(a.keys) || 2 * blocks > largest_grid) {
    return launch_tasks<any_key_body<Record>, 2, 4>(both, a.tokens, stream, kernel);
  }
  launch_kernel(key_insert_kernel<Record>, static_cast<unsigned>(2 * blocks), 32 * key_block_warps,
                stream, kernel, both, blocks);
}

}  // namespace kvcts
