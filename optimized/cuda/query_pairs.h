// Queries of 128 dims in rows of 8 lanes (streams.h), two heads a row at a time: what is one value
// a block or head goes two to a word, which takes half the instructions and shuffles.
#pragma once

#include "optimized/cuda/finite_e2m1.h"
#include "optimized/kernels/fused_indexer_q_rope_quant.h"

namespace kvcts::device {

KVCTS_INLINE std::uint32_t low_twice(std::uint32_t x) { return __byte_perm(x, 0, 0x1010); }
KVCTS_INLINE std::uint32_t high_twice(std::uint32_t x) { return __byte_perm(x, 0, 0x3232); }
// Halves where a number stands are 0, infinities and NaN 0x8000; signs are off.
KVCTS_INLINE std::uint32_t not_finite(std::uint32_t amax) {
  return (amax + 0x00800080u) & 0x80008000u;
}

template <bool Fp4>
struct pair_codes;
template <>
struct pair_codes<false> {
  uint2 low[2], high[2];
  std::uint32_t scales;  // a half a head
};
template <>
struct pair_codes<true> {
  std::uint32_t low[2], high[2];
  std::uint32_t scales[2];  // of the lane's own blocks of a head: low half and high
};

// encode_finite_e2m1 by the factor 2^(127 - scale), two bf16.
KVCTS_INLINE std::uint32_t encode_finite_e2m1_by(const group::bf16x8& x, std::uint32_t factor) {
#ifdef KVCTS_E2M1_INSTRUCTION
  return group::encode_e2m1(x, group::as_f32(factor & 0xFFFF0000u));
#else
  const std::uint32_t doubled = fma2(factor, 0x40004000u, 0x80008000u);
  std::uint32_t codes[4];
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    const std::uint32_t m = abs2(x.w[j]);
    codes[j] = min2(fma2(m, doubled, 0x437C437Cu), fma2(m, factor, 0x43804380u));
  }
  std::uint32_t nibbles[2];
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    const std::uint32_t code_bytes = __byte_perm(codes[2 * i], codes[2 * i + 1], 0x6420);
    const std::uint32_t sign_bytes = signs_of_halves(x.w[2 * i], x.w[2 * i + 1]);
    const std::uint32_t four = select_bits<0x07070707u>(code_bytes, sign_bytes);
    nibbles[i] = select_bits<0x0F0F0F0Fu>(four, four >> 4);  // bytes 0 and 2 are whole
  }
  return __byte_perm(nibbles[0], nibbles[1], 0x6420) ^ 0x44444444u;  // 252 ends in 0x7C
#endif
}

KVCTS_INLINE std::uint32_t larger_or_nan(const group::bf16x8& x) {
  return max2_or_nan(max2_or_nan(abs2(x.w[0]), abs2(x.w[1])),
                     max2_or_nan(abs2(x.w[2]), abs2(x.w[3])));
}

KVCTS_INLINE pair_codes<true> quantize_fp4_pair(const group::bf16x8 (&low)[2],
                                                const group::bf16x8 (&high)[2]) {
  using G = group;
  pair_codes<true> r;
  std::uint32_t amax[2];  // of the low block, of the high block
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    const std::uint32_t a = larger_or_nan(low[i]);
    const std::uint32_t b = larger_or_nan(high[i]);
    std::uint32_t m = max2_or_nan(__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632));
    m = max2_or_nan(m, mxfp4_amax_floor * 0x10001u);
    m = max2_or_nan(m, G::shuffle_xor<1>(m));
    amax[i] = max2_or_nan(m, G::shuffle_xor<2>(m));
  }
  const bool finite = (not_finite(amax[0]) | not_finite(amax[1])) == 0;
  if (__builtin_expect(static_cast<long>(__all_sync(0xFFFFFFFFu, finite) != 0), 1L) != 0) {
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      const std::uint32_t fields = mxfp4_fields(amax[i]);
      const std::uint32_t factors = 0x80008000u - fields;
      r.low[i] = encode_finite_e2m1_by(low[i], low_twice(factors));
      r.high[i] = encode_finite_e2m1_by(high[i], high_twice(factors));
      r.scales[i] = (fields >> 7) - 0x00020002u;
    }
  } else {
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      const std::uint32_t scale_low = mxfp4_scale<G>(G::amax<4>(low[i], mxfp4_amax_floor));
      const std::uint32_t scale_high = mxfp4_scale<G>(G::amax<4>(high[i], mxfp4_amax_floor));
      r.low[i] = G::encode_e2m1(low[i], mxfp4_factor<G>(scale_low));
      r.high[i] = G::encode_e2m1(high[i], mxfp4_factor<G>(scale_high));
      r.scales[i] = scale_low | (scale_high << 16);
    }
  }
  return r;
}

KVCTS_INLINE pair_codes<false> quantize_fp8_pair(const group::bf16x8 (&low)[2],
                                                 const group::bf16x8 (&high)[2]) {
  using G = group;
  std::uint32_t largest[2];
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    largest[i] = larger_halves(high[i], larger_halves(low[i], key_amax_floor * 0x10001u));
  }
  std::uint32_t m = max2(__byte_perm(largest[0], largest[1], 0x5410),
                         __byte_perm(largest[0], largest[1], 0x7632));
  m = max2(m, G::shuffle_xor<1>(m));
  m = max2(m, G::shuffle_xor<2>(m));
  m = max2(m, G::shuffle_xor<4>(m));
  // As e4m3_scale_of, two to a word.
  const std::uint32_t fields = (m + 0x001F001Fu) & 0xFF80FF80u;
  const std::uint32_t infinite = not_finite(m);
  std::uint32_t factors = 0x83008300u - fields;
  pair_codes<false> r;
  r.scales = (fields >> 7) - 0x00080008u;
  if (infinite != 0) {
    r.scales += infinite >> 12;  // from 247 to 255
    factors &= ~((infinite >> 15) * 0xFFFFu);
  }
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    const std::uint32_t factor = i == 0 ? low_twice(factors) : high_twice(factors);
    r.low[i] = e4m3_codes<false>(low[i], factor);
    r.high[i] = e4m3_codes<false>(high[i], factor);
  }
  return r;
}

template <bool Fp4>
KVCTS_INLINE pair_codes<Fp4> quantize_pair(const group::bf16x8 (&low)[2],
                                           const group::bf16x8 (&high)[2]) {
  if constexpr (Fp4) {
    return quantize_fp4_pair(low, high);
  } else {
    return quantize_fp8_pair(low, high);
  }
}

// Lanes 2i and 2i + 1 exchange codes: the even one has both of the low half then, the odd one both
// of the high half, so that one access covers a head.
KVCTS_INLINE uint2 paired_codes(std::uint32_t low, std::uint32_t high) {
  const bool odd = lane_in_row() % 2 == 1;
  const std::uint32_t got = group::shuffle_xor<1>(odd ? low : high);
  return make_uint2(odd ? got : low, odd ? high : got);
}
KVCTS_INLINE uint4 paired_codes(const uint2& low, const uint2& high) {
  const uint2 x = paired_codes(low.x, high.x);
  const uint2 y = paired_codes(low.y, high.y);
  return make_uint4(x.x, y.x, x.y, y.y);
}
// Where a lane's begin, in bytes of a head of `HeadBytes`.
template <int HeadBytes>
KVCTS_INLINE std::uint32_t paired_codes_at() {
  const std::uint32_t lane = lane_in_row();
  return lane % 2 * (HeadBytes / 2) + lane / 2 * (HeadBytes / 8);
}

// The scales that lane q of a row writes: those of its head 4 * q. Lane q + 4 gathers MXFP4's of
// the same head for it.
template <bool Fp4>
struct gathered_scales {
  std::uint32_t word = 0;
  KVCTS_INLINE void add(int pair, const pair_codes<Fp4>& x) {
    const auto lane = static_cast<int>(lane_in_row());
    if constexpr (Fp4) {
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        word = lane % 4 == 2 * pair + i ? x.scales[i] : word;
      }
    } else {
      word = lane / 2 == pair ? x.scales : word;
    }
  }
  // MXFP4: the four bytes; otherwise the byte. All lanes call this.
  KVCTS_INLINE std::uint32_t own() const {
    if constexpr (Fp4) {
      return word | (group::shuffle_xor<4>(word) << 8);
    } else {
      return lane_in_row() % 2 == 1 ? word >> 16 : word & 0xFFFFu;
    }
  }
};

// The weight of a head, as loaded, and what is written for it.
KVCTS_INLINE std::uint32_t load_weight(const fused_indexer_q_rope_quant_arguments& a,
                                       std::int64_t token, std::int64_t head) {
  const unsigned char* row = a.weights + token * a.weights_token_stride;
  return a.weights_are_f32 ? load_in_order(reinterpret_cast<const std::uint32_t*>(row) + head)
                           : load_in_order(reinterpret_cast<const std::uint16_t*>(row) + head);
}
template <bool Fp4>
KVCTS_INLINE void store_scale_and_weight(const fused_indexer_q_rope_quant_arguments& a,
                                         std::int64_t out, std::uint32_t loaded,
                                         std::uint32_t scales) {
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
