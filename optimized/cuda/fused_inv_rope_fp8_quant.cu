#include "optimized/cuda/heads.h"
#include "optimized/kernels/fused_inv_rope_fp8_quant.h"

namespace kvcts {
namespace {

template <bool Aligned>
struct usual_body {
  static constexpr int heads_a_warp = 2;
  static KVCTS_INLINE void run(const fused_inv_rope_fp8_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using G = device::group;
    const auto turned = device::load_angles<G, Aligned>(device::output_angles<G, Aligned>(a, token),
                                                        0, 2, a.table.is_f32);
    device::quantize_output_heads<G, Aligned, heads_a_warp>(a, turned, token, head);
  }
};
struct any_body {
  static constexpr int heads_a_warp = 1;
  static KVCTS_INLINE void run(const fused_inv_rope_fp8_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using G = device::group;
    device::quantize_any_output_head<G>(a, device::output_angles<G, false>(a, token), token, head);
  }
};

bool is_aligned(const fused_inv_rope_fp8_quant_arguments& a) {
  return is_multiple(a.o, 16) && is_multiple(a.o_token_stride, 16) &&
         is_multiple(a.o_head_stride, 16) && is_multiple(a.positions, 8) &&
         is_multiple(a.table.start, 16) && is_multiple(a.table.stride, 16) &&
         is_multiple(a.output, 16) && is_multiple(a.scales, 4);
}

}  // namespace

void launch_fused_inv_rope_fp8_quant(const fused_inv_rope_fp8_quant_arguments& a, profile /*p*/,
                                     cudaStream_t stream) {
  constexpr const char* name = "fused_inv_rope_fp8_quant";
  if (!device::is_usual_output(a)) return launch_heads<any_body>(a, stream, name);
  if (is_aligned(a)) return launch_heads<usual_body<true>>(a, stream, name);
  launch_heads<usual_body<false>>(a, stream, name);
}

}  // namespace kvcts
