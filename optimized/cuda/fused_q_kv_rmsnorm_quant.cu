#include "optimized/cuda/norms.h"
#include "optimized/kernels/fused_q_kv_rmsnorm_quant.h"

namespace kvcts {
namespace {

using arguments = with_profile<fused_q_kv_rmsnorm_quant_arguments>;

template <int Warps, bool Fast>
struct body {
  static __device__ void run(const arguments& a, std::int64_t row, int task) {
    using G = device::group;
    if (task == 0) {
      device::quantize_q<G, Warps, Fast>(a.of, row, a.rules);
    } else {
      device::normalize_kv<G, Warps, Fast>(a.of, row, a.rules);
    }
  }
};

bool is_fast(const fused_q_kv_rmsnorm_quant_arguments& a) {
  return a.q.norm.whole_parts > 0 && a.kv.norm.whole_parts > 0 && is_aligned(a.q) &&
         is_aligned(a.kv) && is_multiple(a.scales, 4);
}

template <int Warps>
void launch(const arguments& a, std::int64_t rows, cudaStream_t stream) {
  constexpr const char* name = "fused_q_kv_rmsnorm_quant";
  if (is_fast(a.of)) {
    launch_tasks<body<Warps, true>, 2, 2>(a, rows, stream, name);
  } else {
    launch_tasks<body<Warps, false>, 2, 2>(a, rows, stream, name);
  }
}

}  // namespace

void launch_fused_q_kv_rmsnorm_quant(const fused_q_kv_rmsnorm_quant_arguments& a, profile p,
                                     cudaStream_t stream) {
  const arguments both = {a, p};
  const auto run = a.q.norm.launch_warps == 8 ? launch<8> : launch<4>;
  run(both, a.scale_rows, stream);
}

}  // namespace kvcts
