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

template <device::indexer_record Record, bool Fast>
struct key_insert_body {
  static __device__ void run(const with_profile<key_insert_arguments>& a, std::int64_t row,
                             int task) {
    using G = device::group;
    if (task == 0) {
      device::insert_key<G, Record, Fast>(a.of.keys, row, a.rules);
    } else {
      device::fill_topk_row<G>(a.of.topk, row);
    }
  }
};

#ifndef KVCTS_VARIANT
#define KVCTS_VARIANT 0
#endif

// A warp's row of 4 * columns bytes of ones by bulk copies from shared memory.
__device__ __forceinline__ void bulk_fill(unsigned char* to, std::uint32_t ones, std::int64_t bytes,
                                          int piece) {
  for (std::int64_t at = 0; at < bytes; at += piece) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + at),
                 "r"(ones), "r"(static_cast<int>(bytes - at < piece ? bytes - at : piece))
                 : "memory");
  }
}

// Blocks of Warps warps; of each 1 + FillBlocks, one inserts Warps * Rows keys and the others fill.
template <device::indexer_record Record, int Warps, int Rows, int Variant>
__global__ void __launch_bounds__(32 * Warps)
    interleaved_kernel(const __grid_constant__ with_profile<key_insert_arguments> a,
                       std::int64_t insert_blocks) {
  wait_for_earlier_kernel();
  using G = device::group;
  const int warp = static_cast<int>(threadIdx.x / 32);
  std::int64_t block = blockIdx.x;
  bool inserts;
  if constexpr (Variant == 2) {
    inserts = block < insert_blocks;
    if (!inserts) block -= insert_blocks;
  } else {
    inserts = block % (1 + Rows) == 0;
    block = inserts ? block / (1 + Rows) : block / (1 + Rows) * Rows + block % (1 + Rows) - 1;
  }
  if (inserts) {
    for (int i = 0; i < Rows; ++i) {
      const std::int64_t row = (block * Rows + i) * Warps + warp;
      if (row < a.of.tokens) device::insert_key<G, Record, true>(a.of.keys, row, a.rules);
    }
    return;
  }
  const std::int64_t row = block * Warps + warp;
  if constexpr (Variant == 3) {
    __shared__ alignas(128) uint4 ones[128];
    for (int i = threadIdx.x; i < 128; i += 32 * Warps) ones[i] = make_uint4(~0u, ~0u, ~0u, ~0u);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (row < a.of.tokens && threadIdx.x % 32 == 0) {
      const auto from = static_cast<std::uint32_t>(__cvta_generic_to_shared(ones));
      bulk_fill(a.of.topk.start + row * a.of.topk.row_stride, from, 4 * a.of.topk.columns, 2048);
      asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
    }
  } else {
    if (row < a.of.tokens) device::fill_topk_row<G>(a.of.topk, row);
  }
}

// A warp fills its row while the loads of its key are under way.
template <device::indexer_record Record, bool Fast>
struct overlapped_body {
  static __device__ void run(const with_profile<key_insert_arguments>& a, std::int64_t row) {
    using G = device::group;
    device::insert_key<G, Record, Fast>(a.of.keys, row, a.rules,
                                        [&] { device::fill_topk_row<G>(a.of.topk, row); });
  }
};

template <device::indexer_record Record, int Warps, int Rows, int Variant>
void launch_interleaved(const with_profile<key_insert_arguments>& both, cudaStream_t stream,
                        const char* kernel) {
  const std::int64_t t = both.of.tokens;
  if (t == 0) return;
  const std::int64_t inserts = (t + Warps * Rows - 1) / (Warps * Rows);
  launch_kernel(interleaved_kernel<Record, Warps, Rows, Variant>,
                static_cast<unsigned>(inserts * (1 + Rows)), 32 * Warps, stream, kernel, both,
                inserts);
}

template <device::indexer_record Record>
void launch_key_insert(const key_insert_arguments& a, profile p, cudaStream_t stream,
                       const char* kernel) {
  const with_profile<key_insert_arguments> both = {a, p};
  if (key_insert_is_fast(a.keys)) {
    if (KVCTS_VARIANT == 0 || a.tokens < 1024) {
      launch_tasks<key_insert_body<Record, true>, 2, 4>(both, a.tokens, stream, kernel);
    }
#if KVCTS_VARIANT == 1
    else
      launch_interleaved<Record, 4, 1, 1>(both, stream, kernel);
#elif KVCTS_VARIANT == 2
    else
      launch_interleaved<Record, 4, 1, 2>(both, stream, kernel);
#elif KVCTS_VARIANT == 3
    else
      launch_interleaved<Record, 4, 1, 3>(both, stream, kernel);
#elif KVCTS_VARIANT == 4
    else
      launch_interleaved<Record, 2, 1, 1>(both, stream, kernel);
#elif KVCTS_VARIANT == 5
    else
      launch_interleaved<Record, 4, 2, 1>(both, stream, kernel);
#elif KVCTS_VARIANT == 6
    else
      launch_rows<overlapped_body<Record, true>, 2>(both, a.tokens, stream, kernel);
#elif KVCTS_VARIANT == 7
    else
      launch_rows<overlapped_body<Record, true>, 4>(both, a.tokens, stream, kernel);
#endif
  } else {
    launch_tasks<key_insert_body<Record, false>, 2, 4>(both, a.tokens, stream, kernel);
  }
}

}  // namespace kvcts
