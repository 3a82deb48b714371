// Rotation of the pairs (2i, 2i+1) of a head's last dims: docs/numerics.md, "RoPE".
#pragma once

#include "optimized/arguments/rope.h"
#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

enum class rope_form : std::uint8_t { store, query, inverse };

// Bit sets of the lanes that rotate: heads of 128 dims in 16 lanes, the upper half of one of 512.
constexpr std::uint32_t upper_of_16 = 0xFF00FF00u;
constexpr std::uint32_t upper_of_32 = 0xFF000000u;

// The forms differ in which of the two products is rounded before the sum. In lanes outside Turning
// c is 1, or what comes of them is not used.
template <class G, rope_form Form, std::uint32_t Turning = 0xFFFFFFFFu>
KVCTS_INLINE void rotate_pair(typename G::f32& even, typename G::f32& odd, const typename G::f32& c,
                              const typename G::f32& s) {
  const typename G::f32 a = even;
  const typename G::f32 b = odd;
  if constexpr (Form == rope_form::inverse) {
    even = G::template fma_in<Turning>(a, c, b * s);
    odd = G::template fma_in<Turning>(b, c, G::negate(a * s));
  } else {
    even = G::template fma_in<Turning>(a, c, G::negate(b * s));
    odd = Form == rope_form::store ? G::template fma_in<Turning>(b, c, a * s)
                                   : G::template fma_in<Turning>(a, s, b * c);
  }
}

// Eight dims a lane, of which 64 rotate: of a head of 128 dims in 16 lanes, or of the upper half of
// one of 512 in 32. Either way the rotated dims lie in the upper 8 of 16 lanes.

// Cosines and sines of a lane's four pairs, in lanes 8..15 and 24..31.
template <class G>
struct angles {
  typename G::f32 c[4], s[4];
};

// From table rows of 32 cosines and 32 sines, one for each half of the lanes as far as there are
// rows. 16 lanes read a row whole: the cosines come to the lower 8.
template <class G, bool Aligned>
KVCTS_INLINE angles<G> load_angles(const unsigned char* row, std::int64_t stride, std::int64_t rows,
                                   bool is_f32) {
  angles<G> r;
  if (is_f32) {
    const auto in = G::template load_words<4, 16, Aligned>(row, stride, rows);
    KVCTS_UNROLL for (int i = 0; i < 4; ++i) r.s[i] = G::as_f32(in.w[i]);
  } else {
    const auto in = G::template load_words<2, 16, Aligned>(row, stride, rows);
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      r.s[2 * i] = bf16_even<G>(in.w[i]);
      r.s[2 * i + 1] = bf16_odd<G>(in.w[i]);
    }
  }
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) r.c[i] = G::template shuffle_xor<8>(r.s[i]);
  return r;
}
KVCTS_INLINE const unsigned char* angles_of(const cos_sin_view& table, std::int64_t position) {
  return table.start + position * table.stride;
}
// Where `turning` does not hold, c = 1 and s = 0: there `store` forms run the formula all the same.
template <class G>
KVCTS_INLINE angles<G> still_outside(const typename G::mask& turning, const angles<G>& a) {
  angles<G> r;
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
    r.c[i] = G::select(turning, a.c[i], G::splat_f32(1.0f));
    r.s[i] = G::select(turning, a.s[i], G::splat_f32(0.0f));
  }
  return r;
}

template <class G, rope_form Form, std::uint32_t Turning = 0xFFFFFFFFu>
KVCTS_INLINE void rotate(typename G::f32 (&x)[8], const angles<G>& a) {
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
    rotate_pair<G, Form, Turning>(x[2 * i], x[2 * i + 1], a.c[i], a.s[i]);
  }
}
template <class G>
KVCTS_INLINE void unpack(const typename G::bf16x8& in, typename G::f32 (&x)[8]) {
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    x[2 * j] = bf16_even<G>(in.w[j]);
    x[2 * j + 1] = bf16_odd<G>(in.w[j]);
  }
}
template <class G>
KVCTS_INLINE typename G::bf16x8 pack(const typename G::f32 (&x)[8]) {
  typename G::bf16x8 r;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) r.w[j] = G::pack_bf16(x[2 * j], x[2 * j + 1]);
  return r;
}
// Rotated and rounded to bf16.
template <class G, rope_form Form, std::uint32_t Turning = 0xFFFFFFFFu>
KVCTS_INLINE typename G::bf16x8 rotated_bf16(const typename G::bf16x8& in, const angles<G>& a) {
  typename G::f32 x[8];
  unpack<G>(in, x);
  rotate<G, Form, Turning>(x, a);
  return pack<G>(x);
}
template <class G>
KVCTS_INLINE typename G::bf16x8 select(const typename G::mask& m, const typename G::bf16x8& a,
                                       const typename G::bf16x8& b) {
  typename G::bf16x8 r;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) r.w[j] = G::select(m, a.w[j], b.w[j]);
  return r;
}

// A head of any dims, at any address, a dim a lane.
struct any_head {
  const unsigned char* x;       // [dims] bf16
  const unsigned char* angles;  // the position's row of the table
  bool angles_are_f32;
  std::uint32_t first;      // rotated dim
  std::uint32_t rope_dims;  // from there on
};
// Dims [dim, dim + count), count at most 32, and zeros; dims that do not rotate as they are. query
// or inverse.
template <class G, rope_form Form>
KVCTS_INLINE typename G::f32 rotated_dims(const any_head& head, std::int64_t dim,
                                          std::int64_t count) {
  static_assert(Form != rope_form::store);
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  using mask = typename G::mask;
  const f32 x = G::template load_bf16<false>(head.x + dim * 2, count);
  if (dim + count <= head.first) return x;
  const u32 rope_dim = G::lane() + (static_cast<std::uint32_t>(dim) - head.first);
  const mask turning =
      (G::lane() < static_cast<std::uint32_t>(count)) & (rope_dim < head.rope_dims);
  const bool whole_pairs = (dim - head.first) % 2 == 0 && count % 2 == 0;
  const f32 partner = whole_pairs ? G::template shuffle_xor<1>(x)
                                  : G::gather_bf16(head.x, (rope_dim ^ 1u) + head.first, turning);
  const u32 pair = rope_dim >> 1;
  const u32 sine = pair + head.rope_dims / 2;
  const f32 c = head.angles_are_f32 ? G::gather_f32(head.angles, pair, turning)
                                    : G::gather_bf16(head.angles, pair, turning);
  const f32 s = head.angles_are_f32 ? G::gather_f32(head.angles, sine, turning)
                                    : G::gather_bf16(head.angles, sine, turning);
  f32 as_even = x;
  f32 even_of_odd = partner;
  f32 odd_of_even = partner;
  f32 as_odd = x;
  rotate_pair<G, Form>(as_even, odd_of_even, c, s);
  rotate_pair<G, Form>(even_of_odd, as_odd, c, s);
  return G::select(turning, G::select((rope_dim & 1u) == 1u, as_odd, as_even), x);
}

}  // namespace kvcts::KVCTS_TARGET
