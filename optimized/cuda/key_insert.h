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

// What a block does where a warp has one task of a token: `Tasks` kinds of blocks in turn, which
// wait for memory, and behind them all the blocks that fill top-k rows: stores that need nothing
// fill the time.
constexpr int role_warps = 4;

struct block_role {
  bool fills;          // top-k rows
  int task;            // where it does not
  std::int64_t token;  // of the warp; may be past the last
};
template <int Tasks>
__device__ __forceinline__ block_role role_of_block(std::int64_t blocks_a_task) {
  const std::int64_t block = blockIdx.x;
  const std::int64_t first_fill = Tasks * blocks_a_task;
  const bool fills = block >= first_fill;
  const std::int64_t of_task = fills ? block - first_fill : block / Tasks;
  return {fills, static_cast<int>(block % Tasks), of_task * role_warps + threadIdx.x / 32};
}
inline std::int64_t role_blocks(std::int64_t tokens) {
  return (tokens + role_warps - 1) / role_warps;
}

// (Keys and rows side by side in a block: 0.90 of a copy; in turn, block by block: 0.90; so: 0.96.)
template <device::indexer_record Record>
__global__ void __launch_bounds__(32 * role_warps)
    key_insert_kernel(const __grid_constant__ with_profile<key_insert_arguments> a,
                      std::int64_t blocks_a_task) {
  wait_for_earlier_kernel();
  using G = device::group;
  const block_role role = role_of_block<1>(blocks_a_task);
  if (role.token >= a.of.tokens) return;
  if (!role.fills) return device::insert_key<G, Record, true>(a.of.keys, role.token, a.rules);
  device::fill_topk_row<G>(a.of.topk, role.token);
}

template <device::indexer_record Record>
void launch_key_insert(const key_insert_arguments& a, profile p, cudaStream_t stream,
                       const char* kernel) {
  const with_profile<key_insert_arguments> both = {a, p};
  const std::int64_t blocks = role_blocks(a.tokens);
  if (blocks == 0) return;
  if (!key_insert_is_fast(a.keys) || 2 * blocks > largest_grid) {
    return launch_tasks<any_key_body<Record>, 2, 4>(both, a.tokens, stream, kernel);
  }
  launch_kernel(key_insert_kernel<Record>, static_cast<unsigned>(2 * blocks), 32 * role_warps,
                stream, kernel, both, blocks);
}

}  // namespace kvcts
