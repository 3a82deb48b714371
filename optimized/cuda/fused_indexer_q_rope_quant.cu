#include "optimized/cuda/heads.h"
#include "optimized/kernels/fused_indexer_q_rope_quant.h"

namespace kvcts {
namespace {

template <query_codes Form, bool Aligned>
struct usual_body {
  static constexpr int strips = 4;  // in flight a warp
  static constexpr int heads_a_warp = 2 * strips;
  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using G = device::group;
    const auto turned = device::load_angles<G, Aligned>(device::query_angles<G, Aligned>(a, token),
                                                        0, 2, a.table.is_f32);
    device::quantize_query_heads<G, Form, Aligned, strips>(a, turned, token, head);
    if constexpr (Form == query_codes::mxfp4) {
      device::scale_query_weights<G, Aligned>(a, token, head, heads_a_warp);
    }
  }
};
template <query_codes Form>
struct any_body {
  static constexpr int heads_a_warp = 1;
  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using G = device::group;
    device::quantize_any_query_head<G, Form>(a, device::query_angles<G, false>(a, token), token,
                                             head);
    if constexpr (Form == query_codes::mxfp4) {
      device::scale_query_weights<G, false>(a, token, head, heads_a_warp);
    }
  }
};

bool is_aligned(const fused_indexer_q_rope_quant_arguments& a) {
  const std::int64_t weight = a.weights_are_f32 ? 4 : 2;
  const std::uintptr_t weight_out = a.weights_out_are_f32 ? 4 : 2;
  return is_multiple(a.positions, 8) && is_multiple(a.q, 16) && is_multiple(a.q_token_stride, 16) &&
         is_multiple(a.q_head_stride, 16) && is_multiple(a.table.start, 16) &&
         is_multiple(a.table.stride, 16) &&
         is_multiple(a.weights, static_cast<std::uintptr_t>(weight)) &&
         is_multiple(a.weights_token_stride, weight) && is_multiple(a.codes, 8) &&
         is_multiple(a.weights_out, weight_out);
}

template <query_codes Form>
void launch_form(const fused_indexer_q_rope_quant_arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_indexer_q_rope_quant";
  if (!device::is_usual_query(a)) return launch_heads<any_body<Form>>(a, stream, name);
  if (is_aligned(a)) return launch_heads<usual_body<Form, true>>(a, stream, name);
  launch_heads<usual_body<Form, false>>(a, stream, name);
}

}  // namespace

void launch_fused_indexer_q_rope_quant(const fused_indexer_q_rope_quant_arguments& a, profile /*p*/,
                                       cudaStream_t stream) {
  switch (a.form) {
    case query_codes::e4m3fn:
      return launch_form<query_codes::e4m3fn>(a, stream);
    case query_codes::e4m3fnuz:
      return launch_form<query_codes::e4m3fnuz>(a, stream);
    case query_codes::mxfp4:
      return launch_form<query_codes::mxfp4>(a, stream);
  }
}

}  // namespace kvcts
