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
  if (is_aligned(a, 16)) {
    launch_rows<global_topk_body<4, true>>(a, a.tokens, stream, name);
  } else if (is_aligned(a, 4)) {
    launch_rows<global_topk_body<1, true>>(a, a.tokens, stream, name);
  } else {
    launch_rows<global_topk_body<1, false>>(a, a.tokens, stream, name);
  }
}

}  // namespace kvcts
