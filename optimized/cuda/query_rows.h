// Codes of queries of 128 dims in rows of 8 lanes (streams.h), `Heads` a row at a time: one, or two
// whose scales share words.
#pragma once

#include <type_traits>

#include "optimized/cuda/finite_e2m1.h"
#include "optimized/cuda/streams.h"
#include "optimized/kernels/fused_indexer_q_rope_quant.h"

namespace kvcts::device {

template <bool Fp4, int Heads>
struct row_codes {
  static_assert(Heads == 1 || Heads == 2);
  using words = std::conditional_t<Fp4, std::uint32_t, uint2>;
  words low[Heads];   // of the lane's 8 dims in the first half of each head
  words high[Heads];  // and in the second
  // MXFP4: a word a head, its low half the scale of the lane's block in the first half, its high
  // half that of the second. E4M3: a half a head.
  std::uint32_t scales[Fp4 ? Heads : 1];
};

template <int Heads>
KVCTS_INLINE row_codes<true, Heads> quantize_mxfp4(const group::bf16x8 (&low)[Heads],
                                                   const group::bf16x8 (&high)[Heads]) {
  using G = group;
  row_codes<true, Heads> r;
  std::uint32_t amax[Heads];
  std::uint32_t beyond = 0;
  KVCTS_UNROLL for (int i = 0; i < Heads; ++i) {
    amax[i] = mxfp4_amax_of_two(low[i], high[i]);
    beyond |= not_finite(amax[i]);
  }
  const int finite = __all_sync(0xFFFFFFFFu, static_cast<int>(beyond == 0));
  if (__builtin_expect(static_cast<long>(finite != 0), 1L) != 0) {
    KVCTS_UNROLL for (int i = 0; i < Heads; ++i) {
      const std::uint32_t fields = mxfp4_fields(amax[i]);
      const std::uint32_t factors = mxfp4_factors(fields);
      r.low[i] = encode_finite_e2m1_by(low[i], low_twice(factors));
      r.high[i] = encode_finite_e2m1_by(high[i], high_twice(factors));
      r.scales[i] = mxfp4_scale_bytes(fields);
    }
  } else {
    KVCTS_UNROLL for (int i = 0; i < Heads; ++i) {
      const std::uint32_t scale_low = mxfp4_scale<G>(G::amax<4>(low[i], mxfp4_amax_floor));
      const std::uint32_t scale_high = mxfp4_scale<G>(G::amax<4>(high[i], mxfp4_amax_floor));
      r.low[i] = G::encode_e2m1(low[i], mxfp4_factor<G>(scale_low));
      r.high[i] = G::encode_e2m1(high[i], mxfp4_factor<G>(scale_high));
      r.scales[i] = scale_low | (scale_high << 16);
    }
  }
  return r;
}

template <int Heads>
KVCTS_INLINE row_codes<false, Heads> quantize_e4m3(const group::bf16x8 (&low)[Heads],
                                                   const group::bf16x8 (&high)[Heads]) {
  using G = group;
  std::uint32_t in_lane[Heads];
  KVCTS_UNROLL for (int i = 0; i < Heads; ++i) {
    in_lane[i] = larger_halves(high[i], larger_halves(low[i], key_amax_floor * 0x10001u));
  }
  std::uint32_t m = max2(__byte_perm(in_lane[0], in_lane[Heads - 1], 0x5410),
                         __byte_perm(in_lane[0], in_lane[Heads - 1], 0x7632));
  m = max2(m, G::shuffle_xor<1>(m));
  m = max2(m, G::shuffle_xor<2>(m));
  m = max2(m, G::shuffle_xor<4>(m));
  // As e4m3_scale_of, a half a head.
  const std::uint32_t fields = (m + 0x001F001Fu) & 0xFF80FF80u;
  const std::uint32_t infinite = not_finite(m);
  std::uint32_t factors = 0x83008300u - fields;
  row_codes<false, Heads> r;
  r.scales[0] = (fields >> 7) - 0x00080008u;
  if (infinite != 0) {
    r.scales[0] += infinite >> 12;  // from 247 to 255
    factors &= ~((infinite >> 15) * 0xFFFFu);
  }
  KVCTS_UNROLL for (int i = 0; i < Heads; ++i) {
    const std::uint32_t factor = i == 0 ? low_twice(factors) : high_twice(factors);
    r.low[i] = e4m3_codes<false>(low[i], factor);
    r.high[i] = e4m3_codes<false>(high[i], factor);
  }
  return r;
}

template <bool Fp4, int Heads>
KVCTS_INLINE row_codes<Fp4, Heads> quantize_heads(const group::bf16x8 (&low)[Heads],
                                                  const group::bf16x8 (&high)[Heads]) {
  if constexpr (Fp4) {
    return quantize_mxfp4(low, high);
  } else {
    return quantize_e4m3(low, high);
  }
}

// A head's four MXFP4 scales, of which the first four lanes of a row have 0 and 2, the others 1
// and 3. All lanes call this.
KVCTS_INLINE std::uint32_t four_scales(std::uint32_t own) {
  return own | (group::shuffle_xor<4>(own) << 8);
}

// A head's weight as it lies there, and what is written of it and of the scales.
KVCTS_INLINE std::uint32_t load_weight(const fused_indexer_q_rope_quant_arguments& a,
                                       std::int64_t token, std::int64_t head) {
  const unsigned char* row = a.weights + token * a.weights_token_stride;
  return a.weights_are_f32 ? load_in_order(reinterpret_cast<const std::uint32_t*>(row) + head)
                           : load_in_order(reinterpret_cast<const std::uint16_t*>(row) + head);
}
template <bool Fp4>
KVCTS_INLINE void store_scales_and_weight(const fused_indexer_q_rope_quant_arguments& a,
                                          std::int64_t out, std::uint32_t scales,
                                          std::uint32_t loaded) {
  using G = group;
  const std::uint32_t weight = a.weights_are_f32 ? loaded : loaded << 16;
  if constexpr (Fp4) {
    reinterpret_cast<std::uint32_t*>(a.scales)[out] = scales;
    const float w = G::as_f32(weight) * a.softmax_scale * a.head_scale;
    if (a.weights_out_are_f32) {
      reinterpret_cast<float*>(a.weights_out)[out] = canonical<G>(w);
    } else {
      reinterpret_cast<std::uint16_t*>(a.weights_out)[out] =
          static_cast<std::uint16_t>(bf16_code<G>(w));
    }
  } else {
    reinterpret_cast<std::uint32_t*>(a.weights_out)[out] = folded_weight<G>(a, weight, scales);
  }
}

}  // namespace kvcts::device
