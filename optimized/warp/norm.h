// Sums over a bf16 row by the tree of its launch, and what follows from them: docs/numerics.md,
// "Sums over a row".
//
// One group does the work of all the launch's warps. Element i of a row belongs to lane
// i / per % 32 of warp i / (32 * per) % warps, so that the 32 * per elements of a part lie in the
// lanes of one warp, parts in order.
#pragma once

#include "optimized/arguments/norms.h"
#include "optimized/warp/rows.h"

// Registers cannot be indexed on the device; on the CPU a loop keeps the code small.
#if defined(__CUDACC__)
#define KVCTS_DEVICE_UNROLL _Pragma("unroll")
#else
#define KVCTS_DEVICE_UNROLL
#endif

namespace kvcts::KVCTS_TARGET {

// S/n + eps; 1/sqrt of it.
KVCTS_INLINE float variance_of(float sum_of_squares, const row_norm& norm, profile p) {
  if (p == profile::ieee && !norm.inverse_is_exact) {
    return true_div_scalar(sum_of_squares, norm.width) + norm.eps;
  }
  return fma_scalar(sum_of_squares, norm.inverse_width, norm.eps);
}
KVCTS_INLINE float reciprocal_root(float sum_of_squares, const row_norm& norm, profile p) {
  const float v = variance_of(sum_of_squares, norm, p);
  return p == profile::nvidia ? rsqrt<profile::nvidia>(v) : rsqrt<profile::ieee>(v);
}

template <class G, int Per>
KVCTS_INLINE typename G::f32 sum_in_lane(const row_part<G, Per>& x) {
  typename G::f32 sum = x.v[0];
  KVCTS_UNROLL for (int j = 1; j < Per; ++j) sum = sum + x.v[j];
  return sum;
}
// The elements of a further chunk join their lane's sum.
template <class G, int Per, bool Squares>
KVCTS_INLINE typename G::f32 joined_in_lane(typename G::f32 sum, const row_part<G, Per>& x) {
  KVCTS_UNROLL for (int j = 0; j < Per; ++j) {
    sum = Squares ? G::fma(x.v[j], x.v[j], sum) : sum + x.v[j];
  }
  return sum;
}

// Halving from lane ^ Half on.
template <class G, int Half>
KVCTS_INLINE typename G::f32 sum_from_half(const typename G::f32& x) {
  if constexpr (Half == 0) {
    return x;
  } else {
    return sum_from_half<G, Half / 2>(x + G::template shuffle_xor<Half>(x));
  }
}
// The squares of `elements` lanes, one element each; the lanes behind repeat them. A lane with the
// lower of the two elements of the first step has x[l]^2 unrounded, one with the upper x[l + h]^2.
template <class G, int Half = 16>
KVCTS_INLINE typename G::f32 squares_over_lanes(const typename G::f32& x, std::int64_t elements) {
  const typename G::f32 other = G::template shuffle_xor<Half>(x);
  if (elements > Half) return sum_from_half<G, Half / 2>(G::fma(x, x, other * other));
  // No lane from `elements` on has a value of its own.
  const typename G::f32 repeated = G::as_f32(G::bits(x) | G::bits(other));
  if constexpr (Half == 1) {
    return repeated * repeated;
  } else {
    return squares_over_lanes<G, Half / 2>(repeated, elements);
  }
}

// --- Any row, read from memory again wherever it is needed.

template <class G, int Per>
KVCTS_INLINE row_part<G, Per> load_shifted(const unsigned char* from, std::int64_t count,
                                           float minus_shift) {
  row_part<G, Per> x;
  if constexpr (Per == 1) {
    x.v[0] = G::template load_bf16<false>(from, count);
  } else {
    const auto in = G::template load_halves<Per / 2, false>(from, count);
    KVCTS_UNROLL for (int j = 0; j < Per / 2; ++j) {
      x.v[2 * j] = bf16_even<G>(in.w[j]);
      x.v[2 * j + 1] = bf16_odd<G>(in.w[j]);
    }
  }
  KVCTS_UNROLL for (int j = 0; j < Per; ++j) x.v[j] = x.v[j] + minus_shift;
  return x;
}

template <class G, int Per, bool Squares>
KVCTS_INLINE typename G::f32 sum_of_parts(const unsigned char* row, const row_norm& norm,
                                          float minus_shift) {
  using f32 = typename G::f32;
  constexpr std::int64_t part = 32 * Per;
  f32 sums = G::splat_f32(0.0f);  // lane w: of warp w
  for (int w = 0; w < norm.tree.warps; ++w) {
    std::int64_t at = w * part;
    if (at >= norm.dims) break;  // zeros
    row_part<G, Per> x = load_shifted<G, Per>(row + 2 * at, norm.dims - at, minus_shift);
    f32 sum;
    if constexpr (Per == 1) {
      sum = Squares ? squares_over_lanes<G>(x.v[0], norm.tree.padded) : sum_over_lanes<G>(x.v[0]);
    } else {
      sum = Squares ? squares_in_lane(x) : sum_in_lane(x);
      for (at += norm.tree.warps * part; at < norm.dims; at += norm.tree.warps * part) {
        x = load_shifted<G, Per>(row + 2 * at, norm.dims - at, minus_shift);
        sum = joined_in_lane<G, Per, Squares>(sum, x);
      }
      sum = sum_over_lanes<G>(sum);
    }
    if (norm.tree.warps == 1) return sum;
    sums = G::select(G::lane() == static_cast<std::uint32_t>(w), G::splat_f32(G::first(sum)), sums);
  }
  if (norm.tree.warps > 4) sums = sums + G::template shuffle_xor<4>(sums);
  if (norm.tree.warps > 2) sums = sums + G::template shuffle_xor<2>(sums);
  return G::splat_f32(G::first(sums + G::template shuffle_xor<1>(sums)));
}

// The sum of x + minus_shift, or of its square. Beyond the row's end are zeros, so that a shift
// needs a row without padding. All lanes hold the same, but for squares of one warp, one a lane.
template <class G, bool Squares>
KVCTS_INLINE typename G::f32 sum_of_row(const unsigned char* row, const row_norm& norm,
                                        float minus_shift) {
  switch (norm.tree.per) {
    case 1:
      return sum_of_parts<G, 1, Squares>(row, norm, minus_shift);
    case 2:
      return sum_of_parts<G, 2, Squares>(row, norm, minus_shift);
    case 4:
      return sum_of_parts<G, 4, Squares>(row, norm, minus_shift);
    default:
      return sum_of_parts<G, 8, Squares>(row, norm, minus_shift);
  }
}

// 1/sqrt of the sum of squares of x + minus_shift, for the element in each lane: the halves of a
// row inside one warp differ.
template <class G>
KVCTS_INLINE typename G::f32 reciprocal_root_of_row(const unsigned char* row, const row_norm& norm,
                                                    float minus_shift, profile p) {
  using f32 = typename G::f32;
  const f32 sum = sum_of_row<G, true>(row, norm, minus_shift);
  const f32 lower = G::splat_f32(reciprocal_root(G::first(sum), norm, p));
  if (norm.tree.padded > 32) return lower;
  f32 upper = sum;
  if (norm.tree.padded == 32) upper = G::template shuffle_xor<16>(sum);
  if (norm.tree.padded == 16) upper = G::template shuffle_xor<8>(sum);
  if (norm.tree.padded == 8) upper = G::template shuffle_xor<4>(sum);
  if (norm.tree.padded == 4) upper = G::template shuffle_xor<2>(sum);
  if (norm.tree.padded == 2) upper = G::template shuffle_xor<1>(sum);
  const auto half = static_cast<std::uint32_t>(norm.tree.padded / 2);
  return G::select(G::lane() < half, lower,
                   G::splat_f32(reciprocal_root(G::first(upper), norm, p)));
}

// Elements [at, at + 32) of a norm's weight or bias, an element a lane.
template <class G>
KVCTS_INLINE typename G::f32 load_parameters(const norm_vector& v, std::int64_t at,
                                             std::int64_t count) {
  return v.is_f32 ? G::template load_f32<false>(v.data + 4 * at, count)
                  : G::template load_bf16<false>(v.data + 2 * at, count);
}

// Elements [at, at + 32) of RMSNorm's RN(RN(x*r) * w).
template <class G>
KVCTS_INLINE typename G::f32 rms_normed(const norm_rows& a, const unsigned char* row,
                                        std::int64_t at, const typename G::f32& r) {
  const std::int64_t count = a.norm.dims - at;
  const typename G::f32 x = G::template load_bf16<false>(row + 2 * at, count);
  return (x * r) * load_parameters<G>(a.weight, at, count);
}

// RMSNorm of a row to bf16.
template <class G>
KVCTS_INLINE void rms_norm_row(const norm_rows& a, std::int64_t row, profile p) {
  const unsigned char* from = a.from + row * a.from_stride;
  unsigned char* to = a.to + row * a.to_stride;
  const typename G::f32 r = reciprocal_root_of_row<G>(from, a.norm, 0.0f, p);
  for (std::int64_t at = 0; at < a.norm.dims; at += 32) {
    G::template store_halves<false>(to + 2 * at, bf16_code<G>(rms_normed<G>(a, from, at, r)),
                                    a.norm.dims - at);
  }
}

// --- A row of whole parts, `parts` of at most Parts, held in the lanes' hands.

template <class G, int Per, int Parts>
struct held_row {
  typename G::template words<Per / 2> part[Parts];
};
template <class G, int Per, int Parts, bool Aligned>
KVCTS_INLINE held_row<G, Per, Parts> load_row(const unsigned char* from, int parts) {
  held_row<G, Per, Parts> row;
  KVCTS_DEVICE_UNROLL for (int i = 0; i < Parts; ++i) {
    row.part[i] = G::template load_words<Per / 2, 32, Aligned>(from + i * (64 * Per), 0, i < parts);
  }
  return row;
}
template <class G, int Words>
KVCTS_INLINE row_part<G, 2 * Words> unpacked(const typename G::template words<Words>& in) {
  row_part<G, 2 * Words> x;
  KVCTS_UNROLL for (int j = 0; j < Words; ++j) {
    x.v[2 * j] = bf16_even<G>(in.w[j]);
    x.v[2 * j + 1] = bf16_odd<G>(in.w[j]);
  }
  return x;
}

template <class G, int Per, int Parts, int Warps>
KVCTS_INLINE float sum_of_squares(const held_row<G, Per, Parts>& row, int parts) {
  static_assert(Parts % Warps == 0);
  typename G::f32 sum[Warps];
  KVCTS_DEVICE_UNROLL for (int w = 0; w < Warps; ++w) {
    sum[w] = G::splat_f32(0.0f);
    if (w >= parts) continue;
    sum[w] = squares_in_lane<G, Per>(unpacked<G, Per / 2>(row.part[w]));
    KVCTS_DEVICE_UNROLL for (int i = w + Warps; i < Parts; i += Warps) {
      if (i < parts) {
        sum[w] = joined_in_lane<G, Per, true>(sum[w], unpacked<G, Per / 2>(row.part[i]));
      }
    }
  }
  KVCTS_DEVICE_UNROLL for (int w = 0; w < Warps; ++w) {
    if (w < parts) sum[w] = sum_over_lanes<G>(sum[w]);
  }
  if constexpr (Warps == 8) {
    KVCTS_UNROLL for (int w = 0; w < 4; ++w) sum[w] = sum[w] + sum[w + 4];
  }
  static_assert(Warps == 4 || Warps == 8);
  return G::first((sum[0] + sum[2]) + (sum[1] + sum[3]));
}

// RMSNorm's RN(RN(x*r) * w) of a part; `at` is its first element.
template <class G, int Per, bool Aligned>
KVCTS_INLINE row_part<G, Per> rms_normed_part(const typename G::template words<Per / 2>& in,
                                              const norm_vector& weight, std::int64_t at, float r) {
  row_part<G, Per> x = unpacked<G, Per / 2>(in);
  const row_part<G, Per> w = load_parameter_part<G, Per, Aligned>(weight.data, weight.is_f32, at);
  KVCTS_UNROLL for (int j = 0; j < Per; ++j) x.v[j] = (x.v[j] * r) * w.v[j];
  return x;
}

// RMSNorm of a row of whole parts to bf16, summed over the `Warps` of its launch.
template <class G, int Parts, int Warps, bool Aligned>
KVCTS_INLINE void rms_norm_held_row(const norm_rows& a, std::int64_t row, profile p) {
  const int parts = a.norm.whole_parts;
  const auto held = load_row<G, 8, Parts, Aligned>(a.from + row * a.from_stride, parts);
  const float r = reciprocal_root(sum_of_squares<G, 8, Parts, Warps>(held, parts), a.norm, p);
  unsigned char* to = a.to + row * a.to_stride;
  KVCTS_DEVICE_UNROLL for (int i = 0; i < Parts; ++i) {
    if (i >= parts) break;
    store_bf16_part<G, 8, Aligned>(
        to + i * 512, rms_normed_part<G, 8, Aligned>(held.part[i], a.weight, i * 256, r));
  }
}

}  // namespace kvcts::KVCTS_TARGET
