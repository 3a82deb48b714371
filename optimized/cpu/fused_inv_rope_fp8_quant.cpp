#include "optimized/kernels/fused_inv_rope_fp8_quant.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

void fused_inv_rope_fp8_quant(const fused_inv_rope_fp8_quant_arguments& a, profile /*p*/,
                              std::int64_t first, std::int64_t last) {
  const bool usual = is_usual_output(a);
  for (std::int64_t token = first; token < last; ++token) {
    const unsigned char* row = output_angles<group, false>(a, token);
    if (usual) {
      const angles<group> turned = load_angles<group, false>(row, 0, 2, a.table.is_f32);
      for (std::int64_t head = 0; head < a.heads; ++head) {
        quantize_output_heads<group, false, 1>(a, turned, token, head);
      }
    } else {
      for (std::int64_t head = 0; head < a.heads; ++head) {
        quantize_any_output_head<group>(a, row, token, head);
      }
    }
  }
}

}  // namespace kvcts::KVCTS_TARGET
