#include "optimized/kernels/fused_q_kv_rmsnorm_quant.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <int Warps>
static void quantize_rows(const fused_q_kv_rmsnorm_quant_arguments& a, profile p,
                          std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    quantize_q<group, Warps, false>(a, row, p);
    normalize_kv<group, Warps, false>(a, row, p);
  }
}

void fused_q_kv_rmsnorm_quant(const fused_q_kv_rmsnorm_quant_arguments& a, profile p,
                              std::int64_t first, std::int64_t last) {
  const auto run = a.q.norm.launch_warps == 8 ? quantize_rows<8> : quantize_rows<4>;
  run(a, p, first, last);
}

}  // namespace kvcts::KVCTS_TARGET
