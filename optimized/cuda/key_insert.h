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

template <device::indexer_record Record>
void launch_key_insert(const key_insert_arguments& a, profile p, cudaStream_t stream,
                       const char* kernel) {
  const with_profile<key_insert_arguments> both = {a, p};
  if (key_insert_is_fast(a.keys)) {
    launch_tasks<key_insert_body<Record, true>, 2, 4>(both, a.tokens, stream, kernel);
  } else {
    launch_tasks<key_insert_body<Record, false>, 2, 4>(both, a.tokens, stream, kernel);
  }
}

}  // namespace kvcts
