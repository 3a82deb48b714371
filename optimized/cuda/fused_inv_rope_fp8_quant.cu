#include "optimized/cuda/heads.h"
#include "optimized/cuda/streams.h"
#include "optimized/kernels/fused_inv_rope_fp8_quant.h"

namespace kvcts {
namespace {

// E4M3 of usual heads at aligned addresses: a head of four tokens, 8 lanes each. A lane has 8 dims
// of each 64, and the last 64 rotate. The scales of four tokens lie side by side; tokens behind the
// last are the padding.
template <bool Packed>
struct aligned_body {
  static constexpr std::int64_t tokens_a_warp = 4;
  static constexpr std::int64_t heads_a_warp = 1;
  static constexpr int blocks_at_once = 4;  // of 8 warps
  static constexpr int parts = 8;           // of 64 dims
  static constexpr int blocks = 4;          // of 128 dims, a scale each

  static KVCTS_INLINE void run(const fused_inv_rope_fp8_quant_arguments& a, std::int64_t first,
                               std::int64_t head) {
    using namespace device;
    using G = group;
    const std::uint32_t lane = lane_in_row();
    const std::int64_t token = first + row_in_warp();
    const bool live = token < a.tokens;
    const std::int64_t read = live ? token : a.tokens - 1;
    const unsigned char* from = a.o + read * a.o_token_stride + head * a.o_head_stride + lane * 16;
    G::bf16x8 x[parts];
    KVCTS_UNROLL for (int i = 0; i < parts; ++i) {
      x[i] = words_of(load_in_order(reinterpret_cast<const uint4*>(from + 128 * i)));
    }
    const std::int64_t position =
        load_after_all(reinterpret_cast<const std::int64_t*>(a.positions) + read);
    const angles<G> turned = load_angles_of_row(angles_of(a.table, position), a.table.is_f32);

    const std::int64_t group_of_head = divided(head, a.heads_per_group);
    const std::int64_t in_group = head - group_of_head * a.heads_per_group;
    unsigned char* to =
        a.output +
        ((group_of_head * a.tokens + token) * a.heads_per_group + in_group) * (64 * parts) +
        lane * 8;
    std::uint32_t scales[blocks];
    KVCTS_UNROLL for (int b = 0; b < blocks - 1; ++b) {
      const G::bf16x8& low = x[2 * b];
      const G::bf16x8& high = x[2 * b + 1];
      const std::uint32_t m = larger_halves(high, larger_halves(low, output_amax_floor * 0x10001u));
      const e4m3_scale scale = e4m3_scale_of(largest_of_row(m));
      scales[b] = scale.biased;
      const uint2 low_codes = e4m3_codes<true>(low, scale.factor);
      const uint2 high_codes = e4m3_codes<true>(high, scale.factor);
      if (live) {
        store_codes(to + 128 * b, low_codes);
        store_codes(to + 128 * b + 64, high_codes);
      }
    }

    // The rotated values are no bf16.
    float y[8];
    unpack<G>(x[parts - 1], y);
    rotate<G, rope_form::inverse>(y, turned);
    const std::uint32_t still = larger_halves(x[parts - 2], 0);
    float amax = fmaxf(G::as_f32(still << 16), G::as_f32(still & 0xFFFF0000u));
    amax = fmaxf(amax, output_f32_floor);
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) amax = larger_magnitude<G>(y[j], amax);
    scales[blocks - 1] = output_scale<G>(largest_over<G, row_lanes>(amax));
    const float factor = key_factor<G>(scales[blocks - 1]);
    const uint2 still_codes =
        e4m3_codes<true>(x[parts - 2], __byte_perm(G::bits(factor), 0, 0x3232));
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) y[j] = y[j] * factor;
    constexpr e4m3_form form = e4m3_form::clamped;
    const uint2 turned_codes = make_uint2(e4m3_word<G, form>(y[0], y[1], y[2], y[3]),
                                          e4m3_word<G, form>(y[4], y[5], y[6], y[7]));
    if (live) {
      store_codes(to + 64 * (parts - 2), still_codes);
      store_codes(to + 64 * (parts - 1), turned_codes);
    }

    constexpr std::uint32_t words = Packed ? 1 : blocks;  // of a head
    if (lane >= words) return;
    std::uint32_t word;
    if constexpr (Packed) {
      word = scales[0] | (scales[1] << 8) | (scales[2] << 16) | (scales[3] << 24);
    } else {
      word = scales[0];
      KVCTS_UNROLL for (int b = 1; b < blocks; ++b) word = lane == b ? scales[b] : word;
      word <<= 23;
    }
    reinterpret_cast<std::uint32_t*>(a.scales)[(head * words + lane) * a.padded_tokens + token] =
        live ? word : 0;
  }
};

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
  if (!is_aligned(a)) return launch_heads<usual_body<false>>(a, stream, name);
  if (!a.quantize) return launch_heads<usual_body<true>>(a, stream, name);
  if (a.packed) return launch_spread_heads<aligned_body<true>>(a, stream, name);
  launch_spread_heads<aligned_body<false>>(a, stream, name);
}

}  // namespace kvcts
