// Conversions of f32 lanes to narrow codes, in integer and f32 operations that every target has.
#pragma once

#include <cstdint>

namespace kvcts::KVCTS_TARGET {

// 4-bit code of y. The codes count 0 .5 1 1.5 2 3 4 6, a concave curve of three lines, so that
// code = RNE(min(2y, y + 2, y/2 + 4, 7)), and rounding, being monotonic, may come before the
// minimum: adding 2^23 leaves the rounded line in the low bits, and a tie goes to the even code.
template <class G>
KVCTS_INLINE typename G::u32 e2m1_code(const typename G::f32& y) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const u32 magnitude = G::bits(y) & 0x7FFFFFFFu;
  const f32 m = G::as_f32(magnitude);
  const f32 line1 = m + m + 8388608.0f;
  const f32 line2 = m + 8388610.0f;
  const f32 line3 = m * 0.5f + 8388612.0f;
  const f32 limit = G::splat_f32(8388615.0f);  // 2^23 + 7, of infinities and NaN too
  const u32 code = G::bits(G::smaller(G::smaller(line1, line2), G::smaller(line3, limit))) & 7u;
  const u32 sign = (G::bits(y) >> 28) & 8u;
  return code | G::select(G::is_nan(y), G::splat(0), sign);
}

// OCP code of y limited to +-448, NaN as +448.
template <class G>
KVCTS_INLINE typename G::u32 e4m3_code(const typename G::f32& y) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const u32 sign = (G::bits(y) >> 24) & 0x80u;
  const f32 m = G::smaller(G::as_f32(G::bits(y) & 0x7FFFFFFFu), G::splat_f32(448.0f));
  const u32 magnitude = G::bits(m);
  // From 2^-6 on: 20 mantissa bits fall away, ties to even; 960 = (127 - 7) << 3.
  const u32 normal = ((magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u)) >> 20) - 960u;
  // Below: units of 2^-9, the last place of 2^14.
  const u32 subnormal = G::bits(m + 16384.0f) - 0x46800000u;
  const u32 code = G::select(m < 0.015625f, subnormal, normal);
  return code | G::select(G::is_nan(y), G::splat(0), sign);
}

// bf16 of y: nearest even, a NaN is 0x7FFF.
template <class G>
KVCTS_INLINE typename G::u32 bf16_code(const typename G::f32& y) {
  using u32 = typename G::u32;
  const u32 b = G::bits(y);
  const u32 rounded = (b + 0x7FFFu + ((b >> 16) & 1u)) >> 16;
  return G::select(G::is_nan(y), G::splat(0x7FFFu), rounded);
}

// f32(bf16(y)).
template <class G>
KVCTS_INLINE typename G::f32 through_bf16(const typename G::f32& y) {
  return G::as_f32(bf16_code<G>(y) << 16);
}

// A word of a bf16 row: its even (low) and odd element.
template <class G>
KVCTS_INLINE typename G::f32 bf16_even(const typename G::u32& word) {
  return G::as_f32(word << 16);
}
template <class G>
KVCTS_INLINE typename G::f32 bf16_odd(const typename G::u32& word) {
  return G::as_f32(word & 0xFFFF0000u);
}

// How a value becomes an E4M3 code.
enum class e4m3_form : std::uint8_t {
  clamped,        // OCP: limited to +-448 first; NaN is +448, 0x7E
  unclamped,      // OCP: the encoder saturates; NaN is 0x7F
  fnuz_clamped,   // FNUZ: limited to +-224 first; NaN is +224, 0x7E
  fnuz_unclamped  // FNUZ: the encoder saturates at +-240; NaN is 0x80
};
template <class G, e4m3_form Form>
KVCTS_INLINE typename G::u32 e4m3_code_of(const typename G::f32& y) {
  using u32 = typename G::u32;
  if constexpr (Form == e4m3_form::clamped) return e4m3_code<G>(y);
  if constexpr (Form == e4m3_form::unclamped) {
    return G::select(G::is_nan(y), G::splat(0x7Fu), e4m3_code<G>(y));
  }
  // An FNUZ code is the OCP code of twice the value, and there is no -0.
  if constexpr (Form == e4m3_form::fnuz_clamped) {
    const u32 code = e4m3_code<G>(y + y);
    return G::select((code & 0x7Fu) == 0u, G::splat(0), code);
  }
  // 0x7F is the number 480 of that doubled scale; 464 is its midpoint with 448 and goes to 448.
  const u32 code = e4m3_code<G>(y + y) | G::select(G::as_f32(G::bits(y) & 0x7FFFFFFFu) > 232.0f,
                                                   G::splat(1), G::splat(0));
  return G::select(G::is_nan(y), G::splat(0x80u),
                   G::select((code & 0x7Fu) == 0u, G::splat(0), code));
}

// Four codes in a word, the first in the low byte.
template <class G, e4m3_form Form>
KVCTS_INLINE typename G::u32 e4m3_word(const typename G::f32& a, const typename G::f32& b,
                                       const typename G::f32& c, const typename G::f32& d) {
#ifdef KVCTS_E4M3_INSTRUCTION
  if constexpr (Form == e4m3_form::clamped) {
    return __byte_perm(e4m3x2(fminf(a, 448.0f), fminf(b, 448.0f)),
                       e4m3x2(fminf(c, 448.0f), fminf(d, 448.0f)), 0x5410);
  }
  if constexpr (Form == e4m3_form::unclamped) {
    return __byte_perm(e4m3x2(a, b), e4m3x2(c, d), 0x5410);
  }
#endif
  return e4m3_code_of<G, Form>(a) | (e4m3_code_of<G, Form>(b) << 8) |
         (e4m3_code_of<G, Form>(c) << 16) | (e4m3_code_of<G, Form>(d) << 24);
}

// ceil(log2(q)) + 127 of a normal q > 0, the log2 rounded to f32; 255 for +infinity and where 2^128
// would be the scale. Just above 2^e the rounded logarithm still is e: up to 22 ulps where e has 7
// bits, half as many for each bit less.
template <class G>
KVCTS_INLINE typename G::u32 ceil_log2_biased(const typename G::f32& q) {
  using u32 = typename G::u32;
  const u32 b = G::bits(q);
  const u32 field = b >> 23;
  // e, or -1 - e below 1: in [0, 127]
  const u32 size = G::select(field > 126u, field - 127u, G::splat(126u) - field);
  const u32 zero = G::splat(0);
  u32 window = zero;  // 22 >> 1 = 11, 22 >> 2 = 5, ...
  window = G::select(size > 3u, G::splat(1), window);
  window = G::select(size > 7u, G::splat(2), window);
  window = G::select(size > 15u, G::splat(5), window);
  window = G::select(size > 31u, G::splat(11), window);
  window = G::select(size > 63u, G::splat(22), window);
  const u32 up = G::select((b & 0x7FFFFFu) > window, G::splat(1), zero);
  return G::select(field > 254u, G::splat(255), field + up);
}
// 2^(biased - 127), biased 1..255: 255 is +infinity.
template <class G>
KVCTS_INLINE typename G::f32 power_of_biased(const typename G::u32& biased) {
  return G::as_f32(biased << 23);
}
// 2^(127 - biased), biased 0..255: exact, the subnormal 2^-127 for 254, and 0 for 255.
template <class G>
KVCTS_INLINE typename G::f32 inverse_power_of_biased(const typename G::u32& biased) {
  using u32 = typename G::u32;
  const u32 normal = (G::splat(254) - G::min(biased, G::splat(254))) << 23;
  const u32 r = G::select(biased > 253u, G::splat(0x00400000u), normal);
  return G::as_f32(G::select(biased > 254u, G::splat(0), r));
}

// max(|x|, so_far) by the rule that ignores NaN; so_far is a number.
template <class G>
KVCTS_INLINE typename G::f32 larger_magnitude(const typename G::f32& x,
                                              const typename G::f32& so_far) {
  return G::larger(G::as_f32(G::bits(x) & 0x7FFFFFFFu), so_far);
}
// The largest over each run of Lanes lanes, in all of them.
template <class G, int Lanes>
KVCTS_INLINE typename G::f32 largest_over(typename G::f32 x) {
  static_assert(Lanes == 1 || Lanes == 2 || Lanes == 4 || Lanes == 8 || Lanes == 16 || Lanes == 32);
  if constexpr (Lanes >= 2) x = G::larger(G::template shuffle_xor<1>(x), x);
  if constexpr (Lanes >= 4) x = G::larger(G::template shuffle_xor<2>(x), x);
  if constexpr (Lanes >= 8) x = G::larger(G::template shuffle_xor<4>(x), x);
  if constexpr (Lanes >= 16) x = G::larger(G::template shuffle_xor<8>(x), x);
  if constexpr (Lanes >= 32) x = G::larger(G::template shuffle_xor<16>(x), x);
  return x;
}
// The sum over the 32 lanes, in all of them: halves first (docs/numerics.md, "Sums over a row").
template <class G>
KVCTS_INLINE typename G::f32 sum_over_lanes(typename G::f32 x) {
  x = x + G::template shuffle_xor<16>(x);
  x = x + G::template shuffle_xor<8>(x);
  x = x + G::template shuffle_xor<4>(x);
  x = x + G::template shuffle_xor<2>(x);
  return x + G::template shuffle_xor<1>(x);
}

// A NaN that arithmetic made, as the device makes it: for f32 that are stored.
template <class G>
KVCTS_INLINE typename G::f32 canonical(const typename G::f32& x) {
  return G::select(G::is_nan(x), G::as_f32(G::splat(0x7FFFFFFFu)), x);
}

// Four codes: -0 becomes 0.
template <class G>
KVCTS_INLINE typename G::u32 without_negative_zero(const typename G::u32& codes) {
  // A byte's high bit is set here where its magnitude is not 0.
  const typename G::u32 nonzero = (codes & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;
  return codes & (nonzero | 0x7F7F7F7Fu);
}

// The number of an E4M3 code in the top byte of `top`, exact; 0x7F and 0xFF are NaN. In FNUZ 0x80
// is the NaN and the numbers are half as large.
template <class G, bool Fnuz>
KVCTS_INLINE typename G::f32 e4m3_number(const typename G::u32& top) {
  using u32 = typename G::u32;
  constexpr std::uint32_t bias = Fnuz ? 119 : 120;        // to that of f32
  constexpr float least = Fnuz ? 0.0078125f : 0.015625f;  // normal number
  const u32 magnitude = (top >> 4) & 0x07F00000u;
  const u32 normal = magnitude + (bias << 23);
  // As if the exponent field were 1, less what its hidden bit adds.
  const u32 subnormal = G::bits(G::as_f32(magnitude + ((bias + 1) << 23)) + -least);
  const u32 number = G::select(magnitude < 0x00800000u, subnormal, normal) | (top & 0x80000000u);
  if constexpr (Fnuz) {
    return G::as_f32(G::select((top >> 24) == 0x80u, G::splat(0x7FFFFFFFu), number));
  }
  return G::as_f32(G::select(magnitude == 0x07F00000u, G::splat(0x7FFFFFFFu), number));
}
// Those of a word's four codes, the low byte's first.
template <class G, bool Fnuz>
KVCTS_INLINE void e4m3_numbers(const typename G::u32& word, typename G::f32 (&x)[4]) {
#ifdef KVCTS_E4M3_INSTRUCTION
  constexpr bool by_instruction = !Fnuz;
#else
  constexpr bool by_instruction = false;
#endif
  if constexpr (by_instruction) {
    e4m3x2_numbers(word, x[0], x[1]);
    e4m3x2_numbers(word >> 16, x[2], x[3]);
  } else {
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) x[j] = e4m3_number<G, Fnuz>(word << (24 - 8 * j));
  }
}

// The number of the E2M1 code in the low nibble; -0 is +0.
template <class G>
KVCTS_INLINE typename G::f32 e2m1_number(const typename G::u32& low) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  const u32 magnitude = (low << 22) & 0x01C00000u;
  const u32 subnormal = G::bits(G::as_f32(magnitude + 0x3F800000u) + -1.0f);
  const f32 number =
      G::as_f32(G::select(magnitude < 0x00800000u, subnormal, magnitude + 0x3F000000u));
  return G::select((low & 8u) == 0u, number, G::splat_f32(0.0f) - number);
}

}  // namespace kvcts::KVCTS_TARGET
