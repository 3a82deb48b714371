#include "optimized/cuda/rows.h"
#include "optimized/kernels/fused_save_compress_norm.h"

namespace kvcts {
namespace {

template <profile P, bool Aligned>
struct tasks {
  static __device__ void run(const fused_save_compress_norm_arguments& a, std::int64_t task) {
    device::save_compress_norm_task<device::group, P, Aligned>(a, task);
  }
};

bool is_aligned(const fused_save_compress_norm_arguments& a) {
  return is_multiple(a.kv_score, 16) && is_multiple(a.kv_score_stride, 16) &&
         is_multiple(a.positions, 8) && is_multiple(a.slot_mapping, 8) &&
         is_multiple(a.weight, 16) && is_multiple(a.latent, 8) && is_multiple(a.latent_stride, 8) &&
         (a.ratio == 1 || (is_multiple(a.query_starts, 4) && is_multiple(a.request_of_token, 4) &&
                           is_multiple(a.state, 16) && is_multiple(a.state_page_stride, 16) &&
                           is_multiple(a.state_row_stride, 16)));
}

template <profile P>
void launch(const fused_save_compress_norm_arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_save_compress_norm";
  const std::int64_t rows = fused_save_compress_norm_rows(a);
  if (is_aligned(a)) {
    launch_rows<tasks<P, true>>(a, rows, stream, name);
  } else {
    launch_rows<tasks<P, false>>(a, rows, stream, name);
  }
}

}  // namespace

void launch_fused_save_compress_norm(const fused_save_compress_norm_arguments& a, profile p,
                                     cudaStream_t stream) {
  (p == profile::nvidia ? launch<profile::nvidia> : launch<profile::ieee>)(a, stream);
}

}  // namespace kvcts
