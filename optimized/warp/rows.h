// Rows of f32 values in the lanes' hands: Per consecutive elements a lane, 32 * Per in all.
#pragma once

#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

template <class G, int Per>
struct row_part {
  typename G::f32 v[Per];
};

// Elements [lane * Per, lane * Per + Per) behind `from`.
template <class G, int Per, bool Aligned>
KVCTS_INLINE row_part<G, Per> load_bf16_part(const unsigned char* from) {
  row_part<G, Per> x;
  if constexpr (Per == 1) {
    x.v[0] = G::template load_bf16<Aligned>(from, 32);
  } else {
    const auto in = G::template load_words<Per / 2, 32, Aligned>(from, 0, 1);
    KVCTS_UNROLL for (int j = 0; j < Per / 2; ++j) {
      x.v[2 * j] = bf16_even<G>(in.w[j]);
      x.v[2 * j + 1] = bf16_odd<G>(in.w[j]);
    }
  }
  return x;
}
template <class G, int Per, bool Aligned>
KVCTS_INLINE row_part<G, Per> load_f32_part(const unsigned char* from) {
  row_part<G, Per> x;
  const auto in = G::template load_words<Per, 32, Aligned>(from, 0, 1);
  KVCTS_UNROLL for (int j = 0; j < Per; ++j) x.v[j] = G::as_f32(in.w[j]);
  return x;
}
// A weight or bias in bf16 or f32.
template <class G, int Per, bool Aligned>
KVCTS_INLINE row_part<G, Per> load_parameter_part(const unsigned char* from, bool is_f32,
                                                  std::int64_t first) {
  return is_f32 ? load_f32_part<G, Per, Aligned>(from + 4 * first)
                : load_bf16_part<G, Per, Aligned>(from + 2 * first);
}

// A lane's own sum of squares: docs/numerics.md, "Sums over a row". Per >= 2.
template <class G, int Per>
KVCTS_INLINE typename G::f32 squares_in_lane(const row_part<G, Per>& x) {
  static_assert(Per >= 2);
  typename G::f32 sum = x.v[1] * x.v[1];
  sum = G::fma(x.v[0], x.v[0], sum);
  KVCTS_UNROLL for (int j = 2; j < Per; ++j) sum = G::fma(x.v[j], x.v[j], sum);
  return sum;
}

// A part of a bf16 row, rounded to bf16.
template <class G, int Per, bool Aligned>
KVCTS_INLINE void store_bf16_part(unsigned char* to, const row_part<G, Per>& x) {
  static_assert(Per >= 2);
  typename G::template words<Per / 2> out;
  KVCTS_UNROLL for (int j = 0; j < Per / 2; ++j) {
    out.w[j] = G::pack_bf16(x.v[2 * j], x.v[2 * j + 1]);
  }
  G::template store_words<Per / 2, 32, Aligned>(to, 0, 1, out);
}

// E4M3 codes of RN(x * factor), 4 or 8 a lane.
template <class G, int Per, bool Aligned, e4m3_form Form>
KVCTS_INLINE void store_e4m3_part(unsigned char* to, const row_part<G, Per>& x,
                                  const typename G::f32& factor) {
  static_assert(Per == 4 || Per == 8);
  typename G::template words<Per / 4> out;
  KVCTS_UNROLL for (int j = 0; j < Per / 4; ++j) {
    out.w[j] = e4m3_word<G, Form>(x.v[4 * j] * factor, x.v[4 * j + 1] * factor,
                                  x.v[4 * j + 2] * factor, x.v[4 * j + 3] * factor);
  }
  G::template store_words<Per / 4, 32, Aligned>(to, 0, 1, out);
}

// E2M1 codes of RN(x * factor), the even element in the low nibble; 4 or 8 a lane.
template <class G, int Per, bool Aligned>
KVCTS_INLINE void store_e2m1_part(unsigned char* to, const row_part<G, Per>& x,
                                  const typename G::f32& factor) {
  static_assert(Per == 4 || Per == 8);
  typename G::u32 codes = e2m1_code<G>(x.v[0] * factor);
  KVCTS_UNROLL for (int j = 1; j < Per; ++j) {
    codes = codes | (e2m1_code<G>(x.v[j] * factor) << (4 * j));
  }
  if constexpr (Per == 4) {
    G::template store_halves<Aligned>(to, codes, 32);
  } else {
    G::template store_words<1, 32, Aligned>(to, 0, 1, {{codes}});
  }
}

}  // namespace kvcts::KVCTS_TARGET
