// The vocabulary on the CPU: a lane-wise value is a struct of vectors of KVCTS_VECTOR_BYTES that
// together hold 32 lanes in order. Compiled once a target, in the namespace KVCTS_TARGET; nothing
// of the standard library's templates, so that no weak symbol of a wider target can be linked into
// code for a narrower one.
#pragma once

#include <cstdint>

#if !defined(KVCTS_TARGET) || !defined(KVCTS_VECTOR_BYTES)
#error "define KVCTS_TARGET and KVCTS_VECTOR_BYTES"
#endif
#define KVCTS_INLINE inline __attribute__((always_inline))
#ifndef KVCTS_UNROLL
#define KVCTS_UNROLL _Pragma("GCC unroll 16")
#endif

namespace kvcts::KVCTS_TARGET {

using byte = unsigned char;

constexpr int group_lanes = 32;
constexpr int vector_lanes = KVCTS_VECTOR_BYTES / 4;
constexpr int vectors = group_lanes / vector_lanes;  // of a lane-wise value

typedef std::uint32_t vec_u32 __attribute__((vector_size(KVCTS_VECTOR_BYTES)));
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
#define KVCTS_LANE_COMPARISON(op)                                          \
  KVCTS_INLINE lane_mask operator op(const lane_u32& a, std::uint32_t b) { \
    lane_mask r;                                                           \
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = a.v[i] op b;   \
    return r;                                                              \
  }
KVCTS_LANE_OPERATOR(lane_u32, +)
KVCTS_LANE_OPERATOR(lane_u32, -)
KVCTS_LANE_OPERATOR(lane_u32, &)
KVCTS_LANE_OPERATOR(lane_u32, |)
KVCTS_LANE_OPERATOR(lane_f32, +)
KVCTS_LANE_OPERATOR(lane_f32, *)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, +)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, -)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, &)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, std::uint32_t, |)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, int, <<)
KVCTS_LANE_SCALAR_OPERATOR(lane_u32, int, >>)
KVCTS_LANE_SCALAR_OPERATOR(lane_f32, float, +)
KVCTS_LANE_SCALAR_OPERATOR(lane_f32, float, *)
KVCTS_LANE_COMPARISON(<)
KVCTS_LANE_COMPARISON(>)
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
KVCTS_INLINE void store_vector(byte* to, const vec_u32& x) {
  *reinterpret_cast<vec_memory*>(to) = (vec_memory)x;
}

}  // namespace kvcts::KVCTS_TARGET

#include "optimized/warp/elements.h"

namespace kvcts::KVCTS_TARGET {

template <int Warps>
struct group {
  static_assert(Warps == 1, "no kernel reduces over several warps yet");
  using u32 = lane_u32;
  using f32 = lane_f32;
  using mask = lane_mask;
  struct bf16x8 {
    u32 w[4];
  };

  static KVCTS_INLINE u32 splat(std::uint32_t x) {
    u32 r;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) r.v[i] = x - vec_u32{};
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
    const u32 product = bits(a * b);
    return as_f32(select((product & 0x7FFFFFFFu) > 0x7F800000u, splat(0x7FFFFFFFu), product));
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
    static_assert(Lanes == 4 || Lanes == 8);
    return r;
  }

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

  template <int LanesPerRow, bool Aligned>
  static KVCTS_INLINE bf16x8 load_rows(const byte* base, std::int64_t stride, std::int64_t rows) {
    constexpr int vectors_a_row = 4 * LanesPerRow / vector_lanes;
    vec_u32 in[4 * vectors];
    KVCTS_UNROLL for (int i = 0; i < 4 * vectors; ++i) {
      const int row = i / vectors_a_row;
      in[i] = row < rows
                  ? load_vector(base + row * stride + (i % vectors_a_row) * KVCTS_VECTOR_BYTES)
                  : vec_u32{};
    }
    // From 4 words of lane 0, 4 of lane 1, ... to a vector a word.
    bf16x8 x;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      const vec_u32* four = &in[4 * i];
      const vec_u32 a01 = every_fourth<0>(four[0], four[1], every_lane{});
      const vec_u32 a23 = every_fourth<2>(four[0], four[1], every_lane{});
      const vec_u32 b01 = every_fourth<0>(four[2], four[3], every_lane{});
      const vec_u32 b23 = every_fourth<2>(four[2], four[3], every_lane{});
      x.w[0].v[i] = lower_halves(a01, b01, every_lane{});
      x.w[1].v[i] = upper_halves(a01, b01, every_lane{});
      x.w[2].v[i] = lower_halves(a23, b23, every_lane{});
      x.w[3].v[i] = upper_halves(a23, b23, every_lane{});
    }
    return x;
  }
  template <int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_rows(byte* base, std::int64_t stride, std::int64_t rows,
                                      const u32& x) {
    constexpr int vectors_a_row = LanesPerRow / vector_lanes;
    KVCTS_UNROLL for (int i = 0; i < vectors; ++i) {
      const int row = i / vectors_a_row;
      if (row < rows) {
        store_vector(base + row * stride + (i % vectors_a_row) * KVCTS_VECTOR_BYTES, x.v[i]);
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
  static KVCTS_INLINE f32 load_f32(const byte* from, std::int64_t count) {
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
    for (int i = 0; i < group_lanes && i < count; ++i) {
      const std::uint32_t word = r.v[i / vector_lanes][i % vector_lanes];
      __builtin_memcpy(to + 4 * i, &word, 4);
    }
  }
};

}  // namespace kvcts::KVCTS_TARGET
