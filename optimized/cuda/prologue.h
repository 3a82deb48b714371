// Launches of the fused prologues: a warp a task, or several of a block for few tokens.
#pragma once

#include "optimized/cuda/key_insert.h"
#include "optimized/cuda/shared_rows.h"
#include "optimized/kernels/prologue.h"

namespace kvcts {

inline bool is_aligned(const mla_rows& a) {
  if (a.rows == 0) return true;
  return is_aligned(a.cache) && is_multiple(a.entry_stride, 4) && is_multiple(a.slots, 8) &&
         is_multiple(a.k_pe, 4) && is_multiple(a.k_pe_stride, 4);
}

inline bool prologue_is_fast(const prologue_arguments& a) {
  return a.q.norm.whole_parts > 0 && is_aligned(a.q) && is_aligned(a.kv) && is_aligned(a.mla) &&
         key_insert_is_fast(a.keys);
}

template <device::indexer_record Record>
struct any_prologue_body {
  static __device__ void run(const with_profile<prologue_arguments>& a, std::int64_t token,
                             int task) {
    using G = device::group;
    switch (task) {
      case 0:
        return device::normalize_q<G, false>(a.of, token, a.rules);
      case 1:
        return device::normalize_kv<G, false>(a.of, token, a.rules);
      case 2:
        return device::insert_key<G, Record, false>(a.of.keys, token, a.rules);
      default:
        return device::fill_topk_row<G>(a.of.topk, token);
    }
  }
};

// Many tokens: a block has a role (key_insert.h). (At 65536 tokens, a token's tasks in one block:
// 0.84 of a copy; top-k rows in every fourth block: 0.87; so: 0.92.)
template <device::indexer_record Record>
__global__ void __launch_bounds__(32 * role_warps)
    many_tokens_kernel(const __grid_constant__ with_profile<prologue_arguments> a,
                       std::int64_t blocks_a_task) {
  wait_for_earlier_kernel();
  using G = device::group;
  const block_role role = role_of_block<3>(blocks_a_task);
  if (role.token >= a.of.tokens) return;
  if (role.fills) return device::fill_topk_row<G>(a.of.topk, role.token);
  switch (role.task) {
    case 0:
      return device::normalize_q<G, true>(a.of, role.token, a.rules);
    case 1:
      return device::normalize_kv<G, true>(a.of, role.token, a.rules);
    default:
      return device::insert_key<G, Record, true>(a.of.keys, role.token, a.rules);
  }
}

// Measured constants: up to how many tokens the warps below share a token, and how many of them
// fill its top-k row.
constexpr std::int64_t shared_prologue_tokens = 1024;
constexpr int shared_fill_warps = 3;

// Few tokens: a block a token. Four warps have the parts of q, four the tiles of kv, one the key,
// the others the top-k row.
constexpr int prologue_tree = 4;

__device__ __forceinline__ void normalize_q_shared(const prologue_arguments& a, std::int64_t token,
                                                   int warp, profile p, float (&sums)[8]) {
  using G = device::group;
  const int parts = a.q.norm.whole_parts;
  const auto in = device::load_shared_parts<8, 2, prologue_tree>(a.q.from + token * a.q.from_stride,
                                                                 warp, parts, true);
  device::row_part<G, 8> weight[2] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int part = warp + i * prologue_tree;
    if (part < parts) {
      weight[i] =
          device::load_parameter_part<G, 8, true>(a.q.weight.data, a.q.weight.is_f32, part * 256);
    }
  }
  const float sum = device::shared_squares<8, 2, prologue_tree>(in, warp, parts);
  if (G::lane() == 0) sums[warp] = sum;
  device::wait_for_row(1, prologue_tree);
  const float r = device::reciprocal_root(
      device::sum_over_warps<prologue_tree>(sums, prologue_tree), a.q.norm, p);
  unsigned char* to = a.q.to + token * a.q.to_stride;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int part = warp + i * prologue_tree;
    if (part < parts) {
      device::store_bf16_part<G, 8, true>(to + part * 512,
                                          device::rms_normed_part<8>(in.part[i], weight[i], r));
    }
  }
}

__device__ __forceinline__ void normalize_kv_shared(const prologue_arguments& a, std::int64_t token,
                                                    int warp, profile p, float (&sums)[8]) {
  using G = device::group;
  const auto in = device::load_shared_parts<4, 1, prologue_tree>(
      a.kv.from + token * a.kv.from_stride, warp, prologue_tree, true);
  const auto weight =
      device::load_parameter_part<G, 4, true>(a.kv.weight.data, a.kv.weight.is_f32, warp * 128);
  const bool has_rope = warp == prologue_tree - 1 && token < a.mla.rows;
  G::words<1> rope = {};
  if (has_rope) {
    rope = G::load_words<1, 32, true>(a.mla.k_pe + token * a.mla.k_pe_stride, 0, 1);
  }
  const device::mla_entry entry = device::mla_entry_of<G, true>(a.mla, token);
  if (has_rope && entry.start != nullptr) {
    G::store_words<1, 32, true>(entry.start + device::mla_entry::rope_at, 0, 1, rope);
  }
  const float sum = device::shared_squares<4, 1, prologue_tree>(in, warp, prologue_tree);
  if (G::lane() == 0) sums[warp] = sum;
  device::wait_for_row(2, prologue_tree);
  const float r = device::reciprocal_root(
      device::sum_over_warps<prologue_tree>(sums, prologue_tree), a.kv.norm, p);
  const auto y = device::rms_normed_part<4>(in.part[0], weight, r);
  device::store_bf16_part<G, 4, true>(a.kv.to + token * a.kv.to_stride + warp * 256, y);
  if (entry.start != nullptr) device::insert_tile<G, true>(a.mla, entry, warp, y, p);
}

template <device::indexer_record Record>
__global__ void __launch_bounds__(32 * (2 * prologue_tree + 1 + shared_fill_warps))
    shared_prologue_kernel(const __grid_constant__ with_profile<prologue_arguments> a) {
  wait_for_earlier_kernel();
  using G = device::group;
  __shared__ float sums[2][8];
  const std::int64_t token = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x / 32);
  if (warp < prologue_tree) {
    normalize_q_shared(a.of, token, warp, a.rules, sums[0]);
  } else if (warp < 2 * prologue_tree) {
    normalize_kv_shared(a.of, token, warp - prologue_tree, a.rules, sums[1]);
  } else if (warp == 2 * prologue_tree) {
    device::insert_key<G, Record, true>(a.of.keys, token, a.rules);
  } else {
    const int part = warp - 2 * prologue_tree - 1;
    device::fill_topk_part<G>(a.of.topk, token, part, shared_fill_warps);
  }
}

template <device::indexer_record Record>
void launch_prologue(const prologue_arguments& a, profile p, cudaStream_t stream,
                     const char* kernel) {
  if (a.tokens == 0) return;
  const with_profile<prologue_arguments> both = {a, p};
  const std::int64_t blocks = role_blocks(a.tokens);
  if (!prologue_is_fast(a) || 4 * blocks > largest_grid) {
    launch_tasks<any_prologue_body<Record>, 4, 1>(both, a.tokens, stream, kernel);
  } else if (a.tokens > shared_prologue_tokens) {
    launch_kernel(many_tokens_kernel<Record>, static_cast<unsigned>(4 * blocks), 32 * role_warps,
                  stream, kernel, both, blocks);
  } else {
    constexpr unsigned warps = 2 * prologue_tree + 1 + shared_fill_warps;
    launch_kernel(shared_prologue_kernel<Record>, static_cast<unsigned>(a.tokens), 32 * warps,
                  stream, kernel, both);
  }
}

}  // namespace kvcts
