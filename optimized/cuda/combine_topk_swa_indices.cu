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
  if (is_aligned(a, 16)) {
    launch_rows<combine_body<4, true>>(a, a.tokens, stream, name);
  } else if (is_aligned(a, 4)) {
    launch_rows<combine_body<1, true>>(a, a.tokens, stream, name);
  } else {
    launch_rows<combine_body<1, false>>(a, a.tokens, stream, name);
  }
}

}  // namespace kvcts
