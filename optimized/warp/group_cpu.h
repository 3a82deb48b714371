// The vocabulary on the CPU: a lane-wise value is a struct of vectors of KVCTS_VECTOR_BYTES that
// together hold 32 lanes in order. Compiled once a target, in the namespace KVCTS_TARGET; nothing
// of the standard library's templates, so that no weak symbol of a wider target can be linked into
// code for a narrower one.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(KVCTS_TARGET) || !defined(KVCTS_VECTOR_BYTES)
#error "define KVCTS_TARGET and KVCTS_VECTOR_BYTES"
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define KVCTS_INLINE inline __attribute__((always_inline))
#define KVCTS_INLINE_LAMBDA __attribute__((always_inline))
#define KVCTS_UNROLL _Pragma("GCC unroll 16")

namespace kvcts::KVCTS_TARGET {

using byte = unsigned char;

constexpr int group_lanes = 32;
constexpr int vector_lanes = KVCTS_VECTOR_BYTES / 4;
constexpr int vectors = group_lanes / vector_lanes;  // of a lane-wise value

typedef std::uint32_t vec_u32 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));
typedef std::uint64_t vec_u64 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));
typedef std::int32_t vec_i32 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));
typedef std::int16_t vec_i16 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));
typedef float vec_f32 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));
// In memory, at any address.
typedef std::uint32_t vec_memory
    __attribute__((vector_size(KVCTS_VECTOR_BYTES), aligned(1), may_alias));

struct lane_u32 {
  vec_u32 v[vectors];
};
struct lane_f32 {
  vec_f32 v[vectors];
};
struct lane_mask {
  vec_i32 v[vectors];
};

#define KVCTS_LANE_OPERATOR(type, op)                                         \
  KVCTS_INLINE type operator op(const type& a, const type& b) {               \
    type r;                                                                   \
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = a.v[i] op b.v[i]; \
    return r;                                                                 \
  }
#define KVCTS_LANE_SCALAR_OPERATOR(type, scalar, op)                     \
  KVCTS_INLINE type operator op(const type& a, scalar b) {               \
    type r;                                                              \
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = a.v[i] op b; \
    return r;                                                            \
  }
#define KVCTS_LANE_SHIFT(op)                                                  \
  KVCTS_INLINE lane_u32 operator op(const lane_u32& a, const lane_u32& b) {   \
    lane_u32 r;                                                               \
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = a.v[i] op b.v[i]; \
    return r;                                                                 \
  }
#define KVCTS_LANE_COMPARISON(type, scalar, op)                               \
  KVCTS_INLINE lane_mask operator op(const type& a, scalar b) {               \
    lane_mask r;                                                              \
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = a.v[i] op b;      \
    return r;                                                                 \
  }                                                                           \
  KVCTS_INLINE lane_mask operator op(const type& a, const type& b) {          \
    lane_mask r;                                                              \
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = a.v[i] op b.v[i]; \
    return r;                                                                 \
  }
KVCTS_LANE_OPERATOR(lane_u32, +)
KVCTS_LANE_OPERATOR(lane_u32, -)
KVCTS_LANE_OPERATOR(lane_u32, &)
KVCTS_LANE_OPERATOR(lane_u32, |)
KVCTS_LANE_OPERATOR(lane_u32, ^)
KVCTS_LANE_OPERATOR(lane_f32, +)
KVCTS_LANE_OPERATOR(lane_f32, -)
KVCTS_LANE_OPERATOR(lane_f32, *)
KVCTS_LANE_OPERATOR(lane_f32, /)
KVCTS_LANE_OPERATOR(lane_mask, &)
KVCTS_LANE_OPERATOR(lane_mask, |)
KVCTS_LANE_SHIFT(<<)
KVCTS_LANE_SHIFT(>>)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, +)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, -)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, *)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, &)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, |)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, ^)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, int, <<)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, int, >>)
KVCTS_LANE_SCALAR_OPERATOR(lane_f32, float, +)
KVCTS_LANE_SCALAR_OPERATOR(lane_f32, float, *)
KVCTS_LANE_COMPARISON(lane_u32, std::uint32_t, <)
KVCTS_LANE_COMPARISON(lane_u32, std::uint32_t, >)
KVCTS_LANE_COMPARISON(lane_u32, std::uint32_t, ==)
KVCTS_LANE_COMPARISON(lane_f32, float, <)
KVCTS_LANE_COMPARISON(lane_f32, float, >)
#undef KVCTS_LANE_SHIFT
#undef KVCTS_LANE_OPERATOR
#undef KVCTS_LANE_SCALAR_OPERATOR
#undef KVCTS_LANE_COMPARISON

// Index lists of vector shuffles.
template <int... I>
struct lane_indices {};
template <int N, int... I>
struct indices_below : indices_below<N - 1, N - 1, I...> {};
template <int... I>
struct indices_below<0, I...> {
  using type = lane_indices<I...>;
};
using every_lane = indices_below<vector_lanes>::type;
constexpr int half_lanes = vector_lanes / 2;

template <int M, int... I>
KVCTS_INLINE vec_u32 xor_lanes(const vec_u32& a, lane_indices<I...>) {
  return __builtin_shufflevector(a, a, (I ^ M)...);
}
// Elements First, First + 4, ... (the first half) and First + 1, First + 5, ... of a and b.
template <int First, int... I>
KVCTS_INLINE vec_u32 every_fourth(const vec_u32& a, const vec_u32& b, lane_indices<I...>) {
  return __builtin_shufflevector(
      a, b, (I < half_lanes ? 4 * I + First : 4 * (I - half_lanes) + First + 1)...);
}
// Elements First, First + 2, ... of a, then of b.
template <int First, int... I>
KVCTS_INLINE vec_u32 every_second(const vec_u32& a, const vec_u32& b, lane_indices<I...>) {
  return __builtin_shufflevector(a, b, (2 * I + First)...);
}
// The lower halves of a and b; the upper halves.
template <int... I>
KVCTS_INLINE vec_u32 lower_halves(const vec_u32& a, const vec_u32& b, lane_indices<I...>) {
  return __builtin_shufflevector(a, b, (I < half_lanes ? I : I + half_lanes)...);
}
template <int... I>
KVCTS_INLINE vec_u32 upper_halves(const vec_u32& a, const vec_u32& b, lane_indices<I...>) {
  return __builtin_shufflevector(a, b, (I < half_lanes ? I + half_lanes : I + vector_lanes)...);
}
// a0 b0 a1 b1 ..., from lane First on.
template <int First, int... I>
KVCTS_INLINE vec_u32 interleaved(const vec_u32& a, const vec_u32& b, lane_indices<I...>) {
  return __builtin_shufflevector(a, b, (First + I / 2 + (I % 2) * vector_lanes)...);
}

KVCTS_INLINE vec_u32 load_vector(const byte* from) {
  return (vec_u32) * reinterpret_cast<const vec_memory*>(from);
}
// 16 and 8 low bits of each lane.
typedef std::uint16_t vec_u16 __attribute__((vector_size(KVCTS_VECTOR_BYTES / 2)));
typedef std::uint8_t vec_u8 __attribute__((vector_size(KVCTS_VECTOR_BYTES / 4)));
KVCTS_INLINE void store_vector(byte* to, const vec_u32& x) {
  *reinterpret_cast<vec_memory*>(to) = (vec_memory)x;
}

}  // namespace kvcts::KVCTS_TARGET

#include "optimized/warp/approximate_cpu.h"
#include "optimized/warp/elements.h"
#include "optimized/warp/fma_cpu.h"

namespace kvcts::KVCTS_TARGET {

struct group {
  using u32 = lane_u32;
  using f32 = lane_f32;
  using mask = lane_mask;
  template <int Words>
  struct words {
    u32 w[Words];
  };
  using bf16x8 = words<4>;

  static KVCTS_INLINE u32 splat(std::uint32_t x) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = x - vec_u32{};
    return r;
  }
  static KVCTS_INLINE f32 splat_f32(float x) {
    f32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = x - vec_f32{};
    return r;
  }
  static KVCTS_INLINE u32 lane() {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      KVCTS_UNROLL for (int j = 0; j < vector_lanes; ++j) {
        r.v[i][j] = static_cast<std::uint32_t>(i * vector_lanes + j);
      }
    }
    return r;
  }
  static KVCTS_INLINE u32 select(const mask& m, const u32& a, const u32& b) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = m.v[i] ? a.v[i] : b.v[i];
    return r;
  }
  static KVCTS_INLINE f32 select(const mask& m, const f32& a, const f32& b) {
    return as_f32(select(m, bits(a), bits(b)));
  }
  // Of values below 2^31.
  static KVCTS_INLINE u32 min(const u32& a, const u32& b) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      const vec_i32 x = (vec_i32)a.v[i];
      const vec_i32 y = (vec_i32)b.v[i];
      r.v[i] = (vec_u32)(x < y ? x : y);
    }
    return r;
  }
  static KVCTS_INLINE u32 max(const u32& a, const u32& b) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      const vec_i32 x = (vec_i32)a.v[i];
      const vec_i32 y = (vec_i32)b.v[i];
      r.v[i] = (vec_u32)(x > y ? x : y);
    }
    return r;
  }
  static KVCTS_INLINE u32 bits(const f32& x) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = (vec_u32)x.v[i];
    return r;
  }
  static KVCTS_INLINE f32 as_f32(const u32& x) {
    f32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = (vec_f32)x.v[i];
    return r;
  }
  static KVCTS_INLINE f32 mul(const f32& a, float b) {
    const f32 product = a * b;
    return select(is_nan(product), as_f32(splat(0x7FFFFFFFu)), product);
  }

#if KVCTS_VECTOR_BYTES == 16 && !defined(__FP_FAST_FMAF)
  static constexpr bool has_fma = false;
#else
  static constexpr bool has_fma = true;
#endif
  static KVCTS_INLINE f32 fma(const f32& a, const f32& b, const f32& c) {
    f32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = fma_of(a.v[i], b.v[i], c.v[i]);
    return r;
  }
  template <std::uint32_t Lanes>
  static KVCTS_INLINE f32 fma_in(const f32& a, const f32& b, const f32& c) {
    f32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      constexpr std::uint32_t all = (1u << vector_lanes) - 1u;
      const bool concerned = (Lanes >> (i * vector_lanes) & all) != 0;
      r.v[i] = concerned ? fma_of(a.v[i], b.v[i], c.v[i]) : a.v[i] + c.v[i];
    }
    return r;
  }
  static KVCTS_INLINE mask is_nan(const f32& x) {
    mask r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = x.v[i] != x.v[i];
    return r;
  }
  static KVCTS_INLINE f32 smaller(const f32& x, const f32& limit) {
    f32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      r.v[i] = x.v[i] < limit.v[i] ? x.v[i] : limit.v[i];
    }
    return r;
  }
  static KVCTS_INLINE f32 larger(const f32& x, const f32& so_far) {
    f32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      r.v[i] = x.v[i] > so_far.v[i] ? x.v[i] : so_far.v[i];
    }
    return r;
  }
  static KVCTS_INLINE u32 pack_bf16(const f32& even, const f32& odd) {
    return bf16_code<group>(even) | (bf16_code<group>(odd) << 16);
  }

  static KVCTS_INLINE float first(const f32& x) { return x.v[0][0]; }
  static KVCTS_INLINE std::uint32_t first(const u32& x) { return x.v[0][0]; }
  // The values of lanes 0 and 16 are those of the halves.
  template <profile P>
  static KVCTS_INLINE f32 rsqrt_halves(const f32& x) {
    constexpr int middle = group_lanes / 2;
    const float lower = rsqrt<P>(x.v[0][0]);
    const float upper = rsqrt<P>(x.v[middle / vector_lanes][middle % vector_lanes]);
    return select(lane() < 16u, splat_f32(lower), splat_f32(upper));
  }

  template <int M>
  static KVCTS_INLINE f32 shuffle_xor(const f32& x) {
    return as_f32(shuffle_xor<M>(bits(x)));
  }
  template <int M>
  static KVCTS_INLINE u32 shuffle_xor(const u32& x) {
    static_assert(M == 1 || M == 2 || M == 4 || M == 8 || M == 16);
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      if constexpr (M < vector_lanes) {
        r.v[i] = xor_lanes<M>(x.v[i], every_lane{});
      } else {
        r.v[i] = x.v[i ^ (M / vector_lanes)];
      }
    }
    return r;
  }

  template <int Lanes>
  static KVCTS_INLINE u32 amax(const bf16x8& x, std::uint32_t floor) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      vec_i16 largest = vec_i16{} + static_cast<std::int16_t>(floor);
      KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
        const vec_i16 m = (vec_i16)x.w[j].v[i] & 0x7FFF;
        const vec_i16 number = m > 0x7F80 ? vec_i16{} : m;
        largest = number > largest ? number : largest;
      }
      r.v[i] = (vec_u32)largest;
    }
    r = max(r & 0xFFFFu, r >> 16);
    r = max(r, shuffle_xor<1>(r));
    r = max(r, shuffle_xor<2>(r));
    if constexpr (Lanes >= 8) r = max(r, shuffle_xor<4>(r));
    if constexpr (Lanes >= 16) r = max(r, shuffle_xor<8>(r));
    static_assert(Lanes == 4 || Lanes == 8 || Lanes == 16);
    return r;
  }

  template <bool ZeroFactor = false>
  static KVCTS_INLINE u32 encode_e2m1(const bf16x8& x, const f32& factor) {
    u32 codes = splat(0);
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      const u32 even = e2m1_code<group>(as_f32(x.w[j] << 16) * factor);
      const u32 odd = e2m1_code<group>(as_f32(x.w[j] & 0xFFFF0000u) * factor);
      codes = codes | ((even | (odd << 4)) << (8 * j));
    }
    return codes;
  }
  // lo: the codes of elements 0..3.
  static KVCTS_INLINE void encode_e4m3(const bf16x8& x, const f32& factor, u32& lo, u32& hi) {
    u32 pair[4];
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      const u32 even = e4m3_code<group>(as_f32(x.w[j] << 16) * factor);
      const u32 odd = e4m3_code<group>(as_f32(x.w[j] & 0xFFFF0000u) * factor);
      pair[j] = even | (odd << 8);
    }
    lo = pair[0] | (pair[1] << 16);
    hi = pair[2] | (pair[3] << 16);
  }

  template <int Words, int LanesPerRow, bool Aligned>
  static KVCTS_INLINE words<Words> load_words(const byte* base, std::int64_t stride,
                                              std::int64_t rows) {
    static_assert(Words * LanesPerRow % vector_lanes == 0);
    constexpr int vectors_a_row = Words * LanesPerRow / vector_lanes;
    vec_u32 in[Words * vectors];
    KVCTS_UNROLL for (int i = 0; i < Words * vectors; ++i) {
      const int row = i / vectors_a_row;
      in[i] = row < rows
                  ? load_vector(base + row * stride + (i % vectors_a_row) * KVCTS_VECTOR_BYTES)
                  : vec_u32{};
    }
    // From the words of lane 0, those of lane 1, ... to a vector a word.
    words<Words> x;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      const vec_u32* some = &in[Words * i];
      if constexpr (Words == 1) {
        x.w[0].v[i] = some[0];
      } else if constexpr (Words == 2) {
        x.w[0].v[i] = every_second<0>(some[0], some[1], every_lane{});
        x.w[1].v[i] = every_second<1>(some[0], some[1], every_lane{});
      } else if constexpr (Words == 8) {
        // Even and odd words, then those of each: a transposition of 8 rows in three rounds.
        vec_u32 a[8];
        vec_u32 b[8];
        KVCTS_UNROLL for (int k = 0; k < 4; ++k) {
          a[k] = every_second<0>(some[2 * k], some[2 * k + 1], every_lane{});
          a[k + 4] = every_second<1>(some[2 * k], some[2 * k + 1], every_lane{});
        }
        KVCTS_UNROLL for (int k = 0; k < 4; k += 2) {
          KVCTS_UNROLL for (int odd = 0; odd < 2; ++odd) {
            b[odd * 4 + k / 2] = every_second<0>(a[odd * 4 + k], a[odd * 4 + k + 1], every_lane{});
            b[odd * 4 + 2 + k / 2] =
                every_second<1>(a[odd * 4 + k], a[odd * 4 + k + 1], every_lane{});
          }
        }
        // b[0..1]: words 0 and 4, b[2..3]: 2 and 6, b[4..5]: 1 and 5, b[6..7]: 3 and 7
        constexpr int word_of[4] = {0, 2, 1, 3};
        KVCTS_UNROLL for (int k = 0; k < 4; ++k) {
          x.w[word_of[k]].v[i] = every_second<0>(b[2 * k], b[2 * k + 1], every_lane{});
          x.w[word_of[k] + 4].v[i] = every_second<1>(b[2 * k], b[2 * k + 1], every_lane{});
        }
      } else {
        static_assert(Words == 4);
        const vec_u32 a01 = every_fourth<0>(some[0], some[1], every_lane{});
        const vec_u32 a23 = every_fourth<2>(some[0], some[1], every_lane{});
        const vec_u32 b01 = every_fourth<0>(some[2], some[3], every_lane{});
        const vec_u32 b23 = every_fourth<2>(some[2], some[3], every_lane{});
        x.w[0].v[i] = lower_halves(a01, b01, every_lane{});
        x.w[1].v[i] = upper_halves(a01, b01, every_lane{});
        x.w[2].v[i] = lower_halves(a23, b23, every_lane{});
        x.w[3].v[i] = upper_halves(a23, b23, every_lane{});
      }
    }
    return x;
  }
  template <int Words, bool Aligned>
  static KVCTS_INLINE words<Words> load_changing_words(const byte* from) {
    return load_words<Words, group_lanes, Aligned>(from, 0, 1);
  }
  static KVCTS_INLINE void converge() {}
  template <int Words, int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_words(byte* base, std::int64_t stride, std::int64_t rows,
                                       const words<Words>& x) {
    static_assert(Words * LanesPerRow % vector_lanes == 0);
    constexpr int vectors_a_row = Words * LanesPerRow / vector_lanes;
    vec_u32 out[Words * vectors];
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      vec_u32* some = &out[Words * i];
      if constexpr (Words == 1) {
        some[0] = x.w[0].v[i];
      } else if constexpr (Words == 2) {
        some[0] = interleaved<0>(x.w[0].v[i], x.w[1].v[i], every_lane{});
        some[1] = interleaved<half_lanes>(x.w[0].v[i], x.w[1].v[i], every_lane{});
      } else {
        static_assert(Words == 4);
        const vec_u32 lower02 = interleaved<0>(x.w[0].v[i], x.w[2].v[i], every_lane{});
        const vec_u32 upper02 = interleaved<half_lanes>(x.w[0].v[i], x.w[2].v[i], every_lane{});
        const vec_u32 lower13 = interleaved<0>(x.w[1].v[i], x.w[3].v[i], every_lane{});
        const vec_u32 upper13 = interleaved<half_lanes>(x.w[1].v[i], x.w[3].v[i], every_lane{});
        some[0] = interleaved<0>(lower02, lower13, every_lane{});
        some[1] = interleaved<half_lanes>(lower02, lower13, every_lane{});
        some[2] = interleaved<0>(upper02, upper13, every_lane{});
        some[3] = interleaved<half_lanes>(upper02, upper13, every_lane{});
      }
    }
    KVCTS_UNROLL for (int i = 0; i < Words * vectors; ++i) {
      const int row = i / vectors_a_row;
      if (row < rows) {
        store_vector(base + row * stride + (i % vectors_a_row) * KVCTS_VECTOR_BYTES, out[i]);
      }
    }
  }
  template <int Lanes, bool Aligned>
  static KVCTS_INLINE void store_pairs(byte* to, const u32& lo, const u32& hi) {
    static_assert(2 * Lanes % vector_lanes == 0);
    KVCTS_UNROLL for (int i = 0; i < 2 * Lanes / vector_lanes; ++i) {
      const vec_u32 words = i % 2 == 0
                                ? interleaved<0>(lo.v[i / 2], hi.v[i / 2], every_lane{})
                                : interleaved<half_lanes>(lo.v[i / 2], hi.v[i / 2], every_lane{});
      store_vector(to + i * KVCTS_VECTOR_BYTES, words);
    }
  }
  template <int FirstLane, bool Aligned>
  static KVCTS_INLINE void store_raw(byte* to, const bf16x8& x) {
    for (int lane = FirstLane; lane < group_lanes; ++lane) {
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t word = x.w[j].v[lane / vector_lanes][lane % vector_lanes];
        __builtin_memcpy(to + (lane - FirstLane) * 16 + j * 4, &word, 4);
      }
    }
  }
  template <int Lanes, int Values>
  static KVCTS_INLINE void store_block_bytes(byte* to, const u32 (&x)[Values], std::int64_t bytes) {
    constexpr int blocks = group_lanes / Lanes;
    for (int i = 0; i < Values; ++i) {
      for (int b = 0; b < blocks; ++b) {
        const int lane = b * Lanes;
        if (i * blocks + b < bytes) {
          to[i * blocks + b] = static_cast<byte>(x[i].v[lane / vector_lanes][lane % vector_lanes]);
        }
      }
    }
  }

  template <bool Aligned>
  static KVCTS_INLINE void store_halves(byte* to, const u32& x, std::int64_t count) {
    if (count >= group_lanes) {
      KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
        const vec_u16 narrow = __builtin_convertvector(x.v[i], vec_u16);
        __builtin_memcpy(to + i * (KVCTS_VECTOR_BYTES / 2), &narrow, KVCTS_VECTOR_BYTES / 2);
      }
      return;
    }
    for (int i = 0; i < count; ++i) {
      const auto half = static_cast<std::uint16_t>(x.v[i / vector_lanes][i % vector_lanes]);
      __builtin_memcpy(to + 2 * i, &half, 2);
    }
  }
  static KVCTS_INLINE void store_bytes(byte* to, const u32& x, std::int64_t count) {
    if (count >= group_lanes) {
      KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
        const vec_u8 narrow = __builtin_convertvector(x.v[i], vec_u8);
        __builtin_memcpy(to + i * (KVCTS_VECTOR_BYTES / 4), &narrow, KVCTS_VECTOR_BYTES / 4);
      }
      return;
    }
    for (int i = 0; i < count; ++i) {
      to[i] = static_cast<byte>(x.v[i / vector_lanes][i % vector_lanes]);
    }
  }
  template <bool Aligned>
  static KVCTS_INLINE void store_word(byte* to, const u32& x) {
    const std::uint32_t word = x.v[0][0];
    __builtin_memcpy(to, &word, 4);
  }
  static KVCTS_INLINE void fill_words(byte* to, std::int64_t count, std::uint32_t word) {
    for (std::int64_t i = 0; i < count; ++i) __builtin_memcpy(to + 4 * i, &word, 4);
  }
  template <bool Aligned>
  static KVCTS_INLINE std::int64_t load_i64(const byte* from) {
    std::int64_t x;
    __builtin_memcpy(&x, from, 8);
    return x;
  }
  template <bool Aligned>
  static KVCTS_INLINE std::int32_t load_i32(const byte* from) {
    std::int32_t x;
    __builtin_memcpy(&x, from, 4);
    return x;
  }

  template <bool Aligned>
  static KVCTS_INLINE f32 load_f32(const byte* from, std::int64_t count) {
    if (count >= group_lanes) return as_f32(load_words<1, group_lanes, Aligned>(from, 0, 1).w[0]);
    u32 r = splat(0);
    for (int i = 0; i < group_lanes && i < count; ++i) {
      std::uint32_t word;
      __builtin_memcpy(&word, from + 4 * i, 4);
      r.v[i / vector_lanes][i % vector_lanes] = word;
    }
    return as_f32(r);
  }
  template <bool Aligned>
  static KVCTS_INLINE f32 load_bf16(const byte* from, std::int64_t count) {
    u32 r = splat(0);
    if (count >= group_lanes) {
      KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
        vec_u16 narrow;
        __builtin_memcpy(&narrow, from + i * (KVCTS_VECTOR_BYTES / 2), KVCTS_VECTOR_BYTES / 2);
        r.v[i] = __builtin_convertvector(narrow, vec_u32) << 16;
      }
      return as_f32(r);
    }
    for (int i = 0; i < group_lanes && i < count; ++i) {
      std::uint16_t half;
      __builtin_memcpy(&half, from + 2 * i, 2);
      r.v[i / vector_lanes][i % vector_lanes] = static_cast<std::uint32_t>(half) << 16;
    }
    return as_f32(r);
  }
  template <bool Aligned>
  static KVCTS_INLINE void store_f32(byte* to, const f32& x, std::int64_t count) {
    const u32 r = bits(x);
    if (count >= group_lanes) return store_words<1, group_lanes, Aligned>(to, 0, 1, {{r}});
    for (int i = 0; i < group_lanes && i < count; ++i) {
      const std::uint32_t word = r.v[i / vector_lanes][i % vector_lanes];
      __builtin_memcpy(to + 4 * i, &word, 4);
    }
  }

  template <int Bytes, bool Aligned>
  static KVCTS_INLINE void copy_bytes(byte* to, const byte* from) {
    __builtin_memcpy(to, from, Bytes);
  }
  template <int Lanes>
  static KVCTS_INLINE u32 load_block_bytes(const byte* from) {
    std::uint32_t lanes[group_lanes];
    for (int b = 0; b < group_lanes / Lanes; ++b) {
      for (int j = 0; j < Lanes; ++j) lanes[b * Lanes + j] = from[b];
    }
    u32 r;
    __builtin_memcpy(&r, lanes, sizeof r);
    return r;
  }

  // High words of the products.
  static KVCTS_INLINE u32 mul_high(const u32& a, std::uint32_t b) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
#if KVCTS_VECTOR_BYTES == 64 && defined(__AVX512F__)
      // Forms with a mask: GCC 12 warns of the others' undefined operand.
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(b));
      const auto odds = (__m512i)((vec_u64)a.v[i] >> 32);
      const __m512i even = _mm512_maskz_mul_epu32(0xFF, (__m512i)a.v[i], factor);
      const __m512i odd = _mm512_maskz_mul_epu32(0xFF, odds, factor);
      r.v[i] = (vec_u32)_mm512_mask_blend_epi32(0xAAAA, (__m512i)((vec_u64)even >> 32), odd);
#elif KVCTS_VECTOR_BYTES == 32 && defined(__AVX2__)
      const __m256i factor = _mm256_set1_epi32(static_cast<int>(b));
      const __m256i even = _mm256_mul_epu32((__m256i)a.v[i], factor);
      const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a.v[i], 32), factor);
      r.v[i] = (vec_u32)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
#else
      for (int j = 0; j < vector_lanes; ++j) {
        r.v[i][j] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(a.v[i][j]) * b >> 32);
      }
#endif
    }
    return r;
  }
  template <bool Aligned>
  static KVCTS_INLINE u32 gather(const byte* base, const u32& index, const mask& m,
                                 std::uint32_t otherwise) {
    u32 r;
#if KVCTS_VECTOR_BYTES == 64 && defined(__AVX512F__)
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      r.v[i] = (vec_u32)_mm512_mask_i32gather_epi32(_mm512_set1_epi32(static_cast<int>(otherwise)),
                                                    _mm512_movepi32_mask((__m512i)m.v[i]),
                                                    (__m512i)index.v[i], base, 4);
    }
#elif KVCTS_VECTOR_BYTES == 32 && defined(__AVX2__)
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      r.v[i] = (vec_u32)_mm256_mask_i32gather_epi32(_mm256_set1_epi32(static_cast<int>(otherwise)),
                                                    reinterpret_cast<const int*>(base),
                                                    (__m256i)index.v[i], (__m256i)m.v[i], 4);
    }
#else
    std::uint32_t at[group_lanes];
    std::int32_t live[group_lanes];
    std::uint32_t word[group_lanes];
    __builtin_memcpy(at, &index, sizeof at);
    __builtin_memcpy(live, &m, sizeof live);
    for (int i = 0; i < group_lanes; ++i) {
      word[i] = otherwise;
      if (live[i] != 0) __builtin_memcpy(&word[i], base + static_cast<std::int64_t>(at[i]) * 4, 4);
    }
    __builtin_memcpy(&r, word, sizeof r);
#endif
    return r;
  }
  template <bool Aligned>
  static KVCTS_INLINE std::int64_t count_not_above(const byte* from, std::int64_t count,
                                                   std::int64_t limit) {
    std::int64_t known = 0;  // that many are not above the limit
    while (known < count) {
      const std::int64_t middle = known + (count - known) / 2;
      if (load_i32<Aligned>(from + middle * 4) <= limit) {
        known = middle + 1;
      } else {
        count = middle;
      }
    }
    return known;
  }

  static KVCTS_INLINE f32 negate(const f32& x) { return as_f32(bits(x) ^ 0x80000000u); }
  template <bool Aligned>
  static KVCTS_INLINE std::uint32_t load_u16(const byte* from) {
    std::uint16_t half;
    __builtin_memcpy(&half, from, 2);
    return half;
  }
  static KVCTS_INLINE f32 gather_f32(const byte* from, const u32& index, const mask& m) {
    u32 r = splat(0);
    for (int i = 0; i < group_lanes; ++i) {
      if (m.v[i / vector_lanes][i % vector_lanes] == 0) continue;
      const std::int64_t at = index.v[i / vector_lanes][i % vector_lanes];
      std::uint32_t word;
      __builtin_memcpy(&word, from + 4 * at, 4);
      r.v[i / vector_lanes][i % vector_lanes] = word;
    }
    return as_f32(r);
  }
  static KVCTS_INLINE f32 gather_bf16(const byte* from, const u32& index, const mask& m) {
    u32 r = splat(0);
    for (int i = 0; i < group_lanes; ++i) {
      if (m.v[i / vector_lanes][i % vector_lanes] == 0) continue;
      const std::int64_t at = index.v[i / vector_lanes][i % vector_lanes];
      std::uint16_t half;
      __builtin_memcpy(&half, from + 2 * at, 2);
      r.v[i / vector_lanes][i % vector_lanes] = static_cast<std::uint32_t>(half) << 16;
    }
    return as_f32(r);
  }
  template <int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_row_words(byte* to, std::int64_t stride, std::int64_t rows,
                                           const u32& x) {
    for (int row = 0; row < group_lanes / LanesPerRow && row < rows; ++row) {
      const int lane = row * LanesPerRow;
      const std::uint32_t word = x.v[lane / vector_lanes][lane % vector_lanes];
      __builtin_memcpy(to + row * stride, &word, 4);
    }
  }
  static KVCTS_INLINE void store_even_bytes(byte* to, const u32& x) {
    for (int i = 0; i < group_lanes / 2; ++i) {
      to[i] = static_cast<byte>(x.v[2 * i / vector_lanes][2 * i % vector_lanes]);
    }
  }
  template <int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_tiles(byte* to, std::int64_t stride, std::int64_t rows,
                                       const u32& lo, const u32& hi) {
    byte in_order[8 * group_lanes];
    store_pairs<group_lanes, Aligned>(in_order, lo, hi);
    for (int i = 0; i < group_lanes / 2; ++i) {
      const int row = 2 * i / LanesPerRow;
      const int tile = i % (LanesPerRow / 2);
      if (row < rows) __builtin_memcpy(to + row * stride + 256 * tile, in_order + 16 * i, 16);
    }
  }

  template <int Words, bool Aligned>
  static KVCTS_INLINE words<Words> load_halves(const byte* from, std::int64_t count) {
    constexpr std::int64_t all = 2 * Words * group_lanes;
    if (count >= all) return load_words<Words, group_lanes, Aligned>(from, 0, 1);
    byte some[2 * all] = {};
    if (count > 0) __builtin_memcpy(some, from, static_cast<std::size_t>(2 * count));
    return load_words<Words, group_lanes, Aligned>(some, 0, 1);
  }

  template <bool Aligned>
  static KVCTS_INLINE void scatter_words(byte* to, const u32& offset, const u32& x, const mask& m) {
    for (int i = 0; i < group_lanes; ++i) {
      if (m.v[i / vector_lanes][i % vector_lanes] == 0) continue;
      const std::uint32_t word = x.v[i / vector_lanes][i % vector_lanes];
      __builtin_memcpy(to + offset.v[i / vector_lanes][i % vector_lanes], &word, 4);
    }
  }
};

}  // namespace kvcts::KVCTS_TARGET
