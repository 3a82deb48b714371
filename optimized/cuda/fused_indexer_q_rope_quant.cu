#include "optimized/cuda/heads.h"
#include "optimized/cuda/query_ring.h"
#include "optimized/cuda/query_rows.h"
#include "optimized/kernels/fused_indexer_q_rope_quant.h"

namespace kvcts {
namespace {

// Usual heads at aligned addresses, 8 lanes a head: a lane has 8 dims of each half of it.
template <bool Fp4>
struct aligned_body {
  static constexpr std::int64_t tokens_a_warp = 1;
  static constexpr std::int64_t heads_a_warp = 4;
  static constexpr int blocks_at_once = 5;  // of 8 warps

  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t first) {
    using namespace device;
    using G = group;
    const std::uint32_t lane = lane_in_row();
    const std::int64_t head = first + row_in_warp();
    const bool present = head < a.heads;
    const std::int64_t read = present ? head : a.heads - 1;
    const unsigned char* from = query_head(a, token, read) + lane * 16;
    const G::bf16x8 low[1] = {load_past_l1_in_order(from)};
    G::bf16x8 high[1] = {load_past_l1_in_order(from + 128)};
    const std::uint32_t weight = load_weight(a, token, read);
    const std::int64_t position =
        load_after_all(reinterpret_cast<const std::int64_t*>(a.positions) + token);
    const angles<G> turned = load_angles_of_row(angles_of(a.table, position), a.table.is_f32);
    high[0] = rotated_bf16<G, rope_form::query>(high[0], turned);
    const row_codes<Fp4, 1> r = quantize_heads<Fp4>(low, high);
    const std::uint32_t scales = Fp4 ? four_scales(r.scales[0]) : r.scales[0] & 0xFFFFu;
    if (!present) return;
    const std::int64_t out = token * a.heads + head;
    constexpr int lane_bytes = Fp4 ? 4 : 8;
    unsigned char* codes = a.codes + out * (16 * lane_bytes) + lane * lane_bytes;
    store_codes(codes, r.low[0]);
    store_codes(codes + 8 * lane_bytes, r.high[0]);
    if (lane == 0) store_scales_and_weight<Fp4>(a, out, scales, weight);
  }
};

template <query_codes Form, bool Aligned>
struct usual_body {
  static constexpr int strips = Form == query_codes::e4m3fnuz ? 2 : 4;  // in flight a warp
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
         is_multiple(a.weights_out, weight_out) &&
         (a.form != query_codes::mxfp4 || is_multiple(a.scales, 4));
}

template <query_codes Form>
void launch_form(const fused_indexer_q_rope_quant_arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_indexer_q_rope_quant";
  constexpr bool fp4 = Form == query_codes::mxfp4;
  if (!device::is_usual_query(a)) return launch_heads<any_body<Form>>(a, stream, name);
  if (!is_aligned(a)) return launch_heads<usual_body<Form, false>>(a, stream, name);
  if constexpr (Form == query_codes::e4m3fnuz) {
    launch_heads<usual_body<Form, true>>(a, stream, name);
  } else if (is_for_query_ring(a)) {
    launch_query_ring<fp4>(a, stream, name);
  } else {
    launch_spread_heads<aligned_body<fp4>>(a, stream, name);
  }
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
