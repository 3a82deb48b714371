// Launches of the fused prologues: a block a token, a warp a task.
#pragma once

#include "optimized/cuda/key_insert.h"
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

template <device::indexer_record Record, bool Fast>
struct prologue_body {
  static __device__ void run(const with_profile<prologue_arguments>& a, std::int64_t token,
                             int task) {
    using G = device::group;
    switch (task) {
      case 0:
        return device::normalize_q<G, Fast>(a.of, token, a.rules);
      case 1:
        return device::normalize_kv<G, Fast>(a.of, token, a.rules);
      case 2:
        return device::insert_key<G, Record, Fast>(a.of.keys, token, a.rules);
      default:
        return device::fill_topk_row<G>(a.of.topk, token);
    }
  }
};

template <device::indexer_record Record>
void launch_prologue(const prologue_arguments& a, profile p, cudaStream_t stream,
                     const char* kernel) {
  const with_profile<prologue_arguments> both = {a, p};
  if (prologue_is_fast(a)) {
    launch_tasks<prologue_body<Record, true>, 4, 1>(both, a.tokens, stream, kernel);
  } else {
    launch_tasks<prologue_body<Record, false>, 4, 1>(both, a.tokens, stream, kernel);
  }
}

}  // namespace kvcts
