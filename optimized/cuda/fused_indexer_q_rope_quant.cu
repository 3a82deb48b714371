#include "optimized/cuda/finite_e2m1.h"
#include "optimized/cuda/heads.h"
#include "optimized/kernels/fused_indexer_q_rope_quant.h"

namespace kvcts {
namespace {

// Usual heads at aligned addresses, 8 lanes a head: a lane has 8 dims of each half of it. Quads:
// four heads each, in flight a warp.
template <query_codes Form, int Quads>
struct aligned_body {
  static_assert(Form != query_codes::e4m3fnuz && Quads <= 4);
  static constexpr bool fp4 = Form == query_codes::mxfp4;
  static constexpr std::int64_t tokens_a_warp = 1;
  static constexpr std::int64_t heads_a_warp = 4 * Quads;
  static constexpr int blocks_at_once = Quads > 2 ? 3 : 5;  // of 8 warps
  using G = device::group;

  // A quad's codes of a lane, and the scales: fp8 the head's byte, MXFP4 the head's word.
  struct result {
    uint2 low, high;  // MXFP4: x alone
    std::uint32_t scales;
  };
  static KVCTS_INLINE result quantize(const G::bf16x8& low, const G::bf16x8& high) {
    using namespace device;
    result r;
    if constexpr (fp4) {
      const std::uint32_t amax_low = mxfp4_amax_or_nan(low);
      const std::uint32_t amax_high = mxfp4_amax_or_nan(high);
      const bool finite = is_number(amax_low) && is_number(amax_high);
      // The first four lanes of a head have its scales 0 and 2, the others 1 and 3.
      std::uint32_t own;
      if (__all_sync(0xFFFFFFFFu, finite)) {
        const std::uint32_t fields_low = mxfp4_fields(amax_low);
        const std::uint32_t fields_high = mxfp4_fields(amax_high);
        r.low.x = encode_finite_e2m1(low, fields_low);
        r.high.x = encode_finite_e2m1(high, fields_high);
        own = mxfp4_scale_bytes(fields_low, fields_high);
      } else {
        const std::uint32_t scale_low = mxfp4_scale<G>(G::amax<4>(low, mxfp4_amax_floor));
        const std::uint32_t scale_high = mxfp4_scale<G>(G::amax<4>(high, mxfp4_amax_floor));
        r.low.x = G::encode_e2m1(low, mxfp4_factor<G>(scale_low));
        r.high.x = G::encode_e2m1(high, mxfp4_factor<G>(scale_high));
        own = scale_low | (scale_high << 16);
      }
      r.scales = own | (G::shuffle_xor<4>(own) << 8);
    } else {
      const std::uint32_t m = larger_halves(high, larger_halves(low, key_amax_floor * 0x10001u));
      const e4m3_scale scale = e4m3_scale_of(largest_of_row(m));
      r.low = e4m3_codes<false>(low, scale.factor);
      r.high = e4m3_codes<false>(high, scale.factor);
      r.scales = scale.biased;
    }
    return r;
  }

  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using namespace device;
    const std::uint32_t lane = lane_in_row();
    const std::uint32_t row = row_in_warp();
    const std::int64_t left = a.heads - head - row;  // heads from the row's first on
    const auto present = [&](std::int64_t quad) { return 4 * quad < left; };
    // An absent head reads the last one.
    const auto head_of = [&](std::int64_t quad) {
      return present(quad) ? head + row + 4 * quad : a.heads - 1;
    };
    G::bf16x8 low[Quads];
    G::bf16x8 high[Quads];
    KVCTS_UNROLL for (int q = 0; q < Quads; ++q) {
      const unsigned char* from = query_head(a, token, head_of(q)) + lane * 16;
      low[q] = load_once<true>(from);
      high[q] = load_once<true>(from + 128);
    }
    // Lane q of a row has the scales and the weight of the row's head of quad q.
    const unsigned char* weights = a.weights + token * a.weights_token_stride;
    const std::int64_t own = head_of(lane % Quads);
    const std::uint32_t loaded =
        a.weights_are_f32 ? load_in_order(reinterpret_cast<const std::uint32_t*>(weights) + own)
                          : load_in_order(reinterpret_cast<const std::uint16_t*>(weights) + own);
    const std::int64_t position =
        load_after_all(reinterpret_cast<const std::int64_t*>(a.positions) + token);
    const angles<G> turned = load_angles_of_row(angles_of(a.table, position), a.table.is_f32);

    const std::int64_t out = token * a.heads + head + row;
    constexpr int lane_bytes = fp4 ? 4 : 8;
    unsigned char* codes = a.codes + out * (16 * lane_bytes) + lane * lane_bytes;
    std::uint32_t scales = 0;
    KVCTS_UNROLL for (int q = 0; q < Quads; ++q) {
      const result r = quantize(low[q], rotated_bf16<G, rope_form::query>(high[q], turned));
      unsigned char* to = codes + q * 4 * (16 * lane_bytes);
      if (present(q)) {
        if constexpr (fp4) {
          store_codes(to, r.low.x);
          store_codes(to + 32, r.high.x);
        } else {
          store_codes(to, r.low);
          store_codes(to + 64, r.high);
        }
      }
      scales = lane == q ? r.scales : scales;
    }
    if (lane >= Quads || !present(lane)) return;
    const std::int64_t own_out = out + 4 * lane;
    const std::uint32_t weight = a.weights_are_f32 ? loaded : loaded << 16;
    if constexpr (fp4) {
      reinterpret_cast<std::uint32_t*>(a.scales)[own_out] = scales;
      const float w = G::as_f32(weight) * a.softmax_scale * a.head_scale;
      if (a.weights_out_are_f32) {
        reinterpret_cast<float*>(a.weights_out)[own_out] = canonical<G>(w);
      } else {
        reinterpret_cast<std::uint16_t*>(a.weights_out)[own_out] =
            static_cast<std::uint16_t>(bf16_code<G>(w));
      }
    } else {
      reinterpret_cast<std::uint32_t*>(a.weights_out)[own_out] =
          folded_weight<G>(a, weight, scales);
    }
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

// Of aligned_body, where there is work for the whole device. MXFP4 is bound by instructions, and
// more quads share out those of a warp.
constexpr int fp8_quads = 2;
constexpr int fp4_quads = 4;

template <query_codes Form>
void launch_form(const fused_indexer_q_rope_quant_arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_indexer_q_rope_quant";
  if (!device::is_usual_query(a)) return launch_heads<any_body<Form>>(a, stream, name);
  if (!is_aligned(a)) return launch_heads<usual_body<Form, false>>(a, stream, name);
  if constexpr (Form == query_codes::e4m3fnuz) {
    launch_heads<usual_body<Form, true>>(a, stream, name);
  } else if (a.tokens * a.heads <= 16 * few_warps) {
    launch_spread_heads<aligned_body<Form, 1>>(a, stream, name);
  } else {
    launch_spread_heads<aligned_body<Form, Form == query_codes::mxfp4 ? fp4_quads : fp8_quads>>(
        a, stream, name);
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
