// The vocabulary on the device: a group is a warp, a lane-wise value an ordinary variable.
#pragma once

#include <cstdint>

#define KVCTS_TARGET device
#define KVCTS_INLINE __device__ __forceinline__
#define KVCTS_INLINE_LAMBDA
#define KVCTS_UNROLL _Pragma("unroll")

// The E2M1 conversion is an instruction of the architecture-specific sm_100 family, and the E4M3
// conversion one from sm_89 on.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define KVCTS_E2M1_INSTRUCTION 1
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define KVCTS_E4M3_INSTRUCTION 1
#endif

namespace kvcts::device {

using byte = unsigned char;

// Two bf16 in a word. None of these flushes subnormals; min and max give the operand that is no
// NaN.
KVCTS_INLINE std::uint32_t abs2(std::uint32_t a) {
  std::uint32_t r;
  asm("abs.bf16x2 %0, %1;" : "=r"(r) : "r"(a));
  return r;
}
KVCTS_INLINE std::uint32_t max2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
KVCTS_INLINE std::uint32_t min2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("min.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
KVCTS_INLINE std::uint32_t fma2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}

#ifdef KVCTS_E2M1_INSTRUCTION
// Two codes, `even` in the low nibble.
KVCTS_INLINE std::uint32_t e2m1x2(float even, float odd) {
  std::uint16_t r;
  asm("{ .reg .b8 pair; cvt.rn.satfinite.e2m1x2.f32 pair, %2, %1; mov.b16 %0, {pair, 0}; }"
      : "=h"(r)
      : "f"(even), "f"(odd));
  return r;
}
#endif
#ifdef KVCTS_E4M3_INSTRUCTION
// Two codes, `even` in the low byte.
KVCTS_INLINE std::uint32_t e4m3x2(float even, float odd) {
  std::uint16_t r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(r) : "f"(even), "f"(odd));
  return r;
}
// The numbers of the two codes in the low half of a word.
KVCTS_INLINE void e4m3x2_numbers(std::uint32_t pair, float& even, float& odd) {
  asm("{ .reg .b32 both; .reg .b16 lo, hi; cvt.rn.f16x2.e4m3x2 both, %2; mov.b32 {lo, hi}, both; "
      "cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
      : "=f"(even), "=f"(odd)
      : "h"(static_cast<std::uint16_t>(pair)));
}
#endif

}  // namespace kvcts::device

#include "optimized/warp/approximate_cuda.h"
#include "optimized/warp/elements.h"
#include "optimized/warp/once_cuda.h"

namespace kvcts::device {

struct group {
  using u32 = std::uint32_t;
  using f32 = float;
  using mask = bool;
  template <int Words>
  struct words {
    u32 w[Words];
  };
  using bf16x8 = words<4>;

  static KVCTS_INLINE u32 splat(u32 x) { return x; }
  static KVCTS_INLINE f32 splat_f32(float x) { return x; }
  static KVCTS_INLINE u32 lane() { return threadIdx.x & 31u; }
  static KVCTS_INLINE u32 select(mask m, u32 a, u32 b) { return m ? a : b; }
  static KVCTS_INLINE f32 select(mask m, f32 a, f32 b) { return m ? a : b; }
  static KVCTS_INLINE u32 min(u32 a, u32 b) { return a < b ? a : b; }
  static KVCTS_INLINE u32 max(u32 a, u32 b) { return a > b ? a : b; }
  static KVCTS_INLINE u32 bits(f32 x) { return __float_as_uint(x); }
  static KVCTS_INLINE f32 as_f32(u32 x) { return __uint_as_float(x); }
  static KVCTS_INLINE f32 mul(f32 a, f32 b) { return __fmul_rn(a, b); }

  static constexpr bool has_fma = true;
  static KVCTS_INLINE f32 fma(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
  template <std::uint32_t Lanes>
  static KVCTS_INLINE f32 fma_in(f32 a, f32 b, f32 c) {
    return __fmaf_rn(a, b, c);
  }
  static KVCTS_INLINE mask is_nan(f32 x) { return (bits(x) & 0x7FFFFFFFu) > 0x7F800000u; }
  static KVCTS_INLINE f32 smaller(f32 x, f32 limit) { return as_f32(min(bits(x), bits(limit))); }
  static KVCTS_INLINE f32 larger(f32 x, f32 so_far) { return fmaxf(x, so_far); }
  static KVCTS_INLINE u32 pack_bf16(f32 even, f32 odd) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(odd), "f"(even));
    return r;
  }

  static KVCTS_INLINE f32 first(f32 x) { return __shfl_sync(0xFFFFFFFFu, x, 0); }
  static KVCTS_INLINE u32 first(u32 x) { return __shfl_sync(0xFFFFFFFFu, x, 0); }
  template <profile P>
  static KVCTS_INLINE f32 rsqrt_halves(f32 x) {
    return rsqrt<P>(x);
  }

  template <int M>
  static KVCTS_INLINE f32 shuffle_xor(f32 x) {
    return as_f32(shuffle_xor<M>(bits(x)));
  }
  template <int M>
  static KVCTS_INLINE u32 shuffle_xor(u32 x) {
    static_assert(M == 1 || M == 2 || M == 4 || M == 8 || M == 16);
    return __shfl_xor_sync(0xFFFFFFFFu, x, M);
  }

  template <int Lanes>
  static KVCTS_INLINE u32 amax(const bf16x8& x, u32 floor) {
    static_assert(Lanes == 4 || Lanes == 8 || Lanes == 16);
    u32 m = max2(max2(abs2(x.w[0]), abs2(x.w[1])), max2(abs2(x.w[2]), abs2(x.w[3])));
    m = max2(m, floor * 0x10001u);  // no NaN from here on
    m = max2(m, shuffle_xor<1>(m));
    m = max2(m, shuffle_xor<2>(m));
    if constexpr (Lanes >= 8) m = max2(m, shuffle_xor<4>(m));
    if constexpr (Lanes >= 16) m = max2(m, shuffle_xor<8>(m));
    return max2(m, m >> 16) & 0xFFFFu;
  }

  template <bool ZeroFactor = false>
  static KVCTS_INLINE u32 encode_e2m1(const bf16x8& x, f32 factor) {
#ifdef KVCTS_E2M1_INSTRUCTION
    u32 pair[4];
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      pair[j] = e2m1x2(as_f32(x.w[j] << 16) * factor, as_f32(x.w[j] & 0xFFFF0000u) * factor);
    }
    return __byte_perm(__byte_perm(pair[0], pair[1], 0x4040), __byte_perm(pair[2], pair[3], 0x4040),
                       0x5410);
#else
    // e2m1_code of elements.h on two bf16 at once: 128 takes the part of 2^23, and a fused
    // multiply-add rounds each line once. factor is in [2^-127, 2^126], so that twice and half of
    // it are bf16 numbers too.
    const u32 factor1 = __byte_perm(bits(factor + factor), 0, 0x3232);
    const u32 factor2 = __byte_perm(bits(factor), 0, 0x3232);
    const u32 factor3 = __byte_perm(bits(factor * 0.5f), 0, 0x3232);
    u32 signs[4];
    u32 codes[4];
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      const u32 number = min2(x.w[j], 0x7F807F80u);  // a NaN becomes +infinity
      const u32 m = abs2(number);
      const u32 line1 = fma2(m, factor1, 0x43004300u);  // 128
      const u32 line2 = fma2(m, factor2, 0x43024302u);  // 130
      const u32 line3 = fma2(m, factor3, 0x43044304u);  // 132
      // An infinity times 0 is a NaN, whose sign is +.
      signs[j] = ZeroFactor ? fma2(number, factor2, 0x80008000u) : number;
      codes[j] = min2(min2(line1, line2), min2(line3, 0x43074307u));
    }
    // Bytes 0 and 2 of a word hold two codes, the top bits of bytes 1 and 3 their signs.
    u32 nibbles[2];
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      const u32 code_bytes = __byte_perm(codes[2 * i], codes[2 * i + 1], 0x6420);
      const u32 sign_bytes = __byte_perm(signs[2 * i], signs[2 * i + 1], 0x7531);
      const u32 four = ((sign_bytes >> 4) & 0x08080808u) | code_bytes;
      nibbles[i] = four | (four >> 4);  // bytes 0 and 2 are whole
    }
    return __byte_perm(nibbles[0], nibbles[1], 0x6420);
#endif
  }
  // lo: the codes of elements 0..3.
  static KVCTS_INLINE void encode_e4m3(const bf16x8& x, f32 factor, u32& lo, u32& hi) {
    u32 pair[4];
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      const f32 even = as_f32(x.w[j] << 16) * factor;
      const f32 odd = as_f32(x.w[j] & 0xFFFF0000u) * factor;
#ifdef KVCTS_E4M3_INSTRUCTION
      pair[j] = e4m3x2(fminf(even, 448.0f), fminf(odd, 448.0f));  // NaN becomes 448
#else
      pair[j] = e4m3_code<group>(even) | (e4m3_code<group>(odd) << 8);
#endif
    }
    lo = __byte_perm(pair[0], pair[1], 0x5410);
    hi = __byte_perm(pair[2], pair[3], 0x5410);
  }

  template <int Words, int LanesPerRow, bool Aligned>
  static KVCTS_INLINE words<Words> load_words(const byte* base, std::int64_t stride,
                                              std::int64_t rows) {
    const int row = static_cast<int>(lane()) / LanesPerRow;
    const byte* from = base + row * stride + lane() % LanesPerRow * (4 * Words);
    words<Words> x = {};
    if (row < rows) {
      if constexpr (!Aligned) {
        KVCTS_UNROLL for (int j = 0; j < Words; ++j) x.w[j] = load_word(from + 4 * j);
      } else if constexpr (Words == 8) {
        KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
          const uint4 four = load_global(reinterpret_cast<const uint4*>(from) + half);
          x.w[4 * half] = four.x;
          x.w[4 * half + 1] = four.y;
          x.w[4 * half + 2] = four.z;
          x.w[4 * half + 3] = four.w;
        }
      } else if constexpr (Words == 4) {
        const uint4 four = load_global(reinterpret_cast<const uint4*>(from));
        x = {{four.x, four.y, four.z, four.w}};
      } else if constexpr (Words == 2) {
        const uint2 two = load_global(reinterpret_cast<const uint2*>(from));
        x = {{two.x, two.y}};
      } else {
        static_assert(Words == 1);
        x = {{load_global(reinterpret_cast<const u32*>(from))}};
      }
    }
    return x;
  }
  template <int Words, bool Aligned>
  static KVCTS_INLINE words<Words> load_changing_words(const byte* from) {
    static_assert(Words == 4);
    from += lane() * (4 * Words);
    if constexpr (Aligned) {
      const uint4 four = *reinterpret_cast<const uint4*>(from);
      return {{four.x, four.y, four.z, four.w}};
    } else {
      words<Words> x;
      KVCTS_UNROLL for (int j = 0; j < Words; ++j) x.w[j] = load_word(from + 4 * j);
      return x;
    }
  }
  static KVCTS_INLINE void converge() { __syncwarp(); }
  template <int Words, int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_words(byte* base, std::int64_t stride, std::int64_t rows,
                                       const words<Words>& x) {
    const int row = static_cast<int>(lane()) / LanesPerRow;
    if (row >= rows) return;
    byte* to = base + row * stride + lane() % LanesPerRow * (4 * Words);
    if constexpr (!Aligned) {
      KVCTS_UNROLL for (int j = 0; j < Words; ++j) store_one_word<false>(to + 4 * j, x.w[j]);
    } else if constexpr (Words == 4) {
      *reinterpret_cast<uint4*>(to) = make_uint4(x.w[0], x.w[1], x.w[2], x.w[3]);
    } else if constexpr (Words == 2) {
      *reinterpret_cast<uint2*>(to) = make_uint2(x.w[0], x.w[1]);
    } else {
      static_assert(Words == 1);
      *reinterpret_cast<u32*>(to) = x.w[0];
    }
  }
  template <int Lanes, bool Aligned>
  static KVCTS_INLINE void store_pairs(byte* to, u32 lo, u32 hi) {
    if (lane() < Lanes) store_two_words<Aligned>(to + lane() * 8, lo, hi);
  }
  template <int FirstLane, bool Aligned>
  static KVCTS_INLINE void store_raw(byte* to, const bf16x8& x) {
    if (lane() < FirstLane) return;
    to += (lane() - FirstLane) * 16;
    store_two_words<Aligned>(to, x.w[0], x.w[1]);
    store_two_words<Aligned>(to + 8, x.w[2], x.w[3]);
  }
  // The lanes of a block share its values out among them.
  template <int Lanes, int Values>
  static KVCTS_INLINE void store_block_bytes(byte* to, const u32 (&x)[Values], std::int64_t bytes) {
    static_assert(Values <= Lanes);
    const u32 value = lane() % Lanes;
    u32 mine = x[0];
    KVCTS_UNROLL for (int i = 1; i < Values; ++i) mine = value == i ? x[i] : mine;
    const u32 at = value * (32 / Lanes) + lane() / Lanes;
    if (value < Values && at < bytes) to[at] = static_cast<byte>(mine);
  }

  template <bool Aligned>
  static KVCTS_INLINE void store_halves(byte* to, u32 x, std::int64_t count) {
    if (lane() >= count) return;
    to += lane() * 2;
    if constexpr (Aligned) {
      *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(x);
    } else {
      to[0] = static_cast<byte>(x);
      to[1] = static_cast<byte>(x >> 8);
    }
  }
  static KVCTS_INLINE void store_bytes(byte* to, u32 x, std::int64_t count) {
    if (lane() < count) to[lane()] = static_cast<byte>(x);
  }
  template <bool Aligned>
  static KVCTS_INLINE void store_word(byte* to, u32 x) {
    if (lane() == 0) store_one_word<Aligned>(to, x);
  }
  // `to` is a multiple of 4.
  static KVCTS_INLINE void fill_words(byte* to, std::int64_t count, u32 word) {
    auto* words_there = reinterpret_cast<u32*>(to);
    const auto misplaced = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) / 4 % 4);
    const std::int64_t before = (4 - misplaced) % 4 < count ? (4 - misplaced) % 4 : count;
    if (lane() < before) words_there[lane()] = word;
    const std::int64_t fours = (count - before) / 4;
    auto* middle = reinterpret_cast<uint4*>(words_there + before);
#pragma unroll 4
    for (std::int64_t i = lane(); i < fours; i += 32) {
      store_once(middle + i, make_uint4(word, word, word, word));
    }
    const std::int64_t done = before + fours * 4;
    if (lane() < count - done) words_there[done + lane()] = word;
  }
  template <bool Aligned>
  static KVCTS_INLINE std::int64_t load_i64(const byte* from) {
    if constexpr (Aligned) return load_global(reinterpret_cast<const long long*>(from));
    return static_cast<std::int64_t>(load_word(from) |
                                     static_cast<std::uint64_t>(load_word(from + 4)) << 32);
  }
  template <bool Aligned>
  static KVCTS_INLINE std::int32_t load_i32(const byte* from) {
    if constexpr (Aligned) return load_global(reinterpret_cast<const int*>(from));
    return static_cast<std::int32_t>(load_word(from));
  }

  template <bool Aligned>
  static KVCTS_INLINE f32 load_f32(const byte* from, std::int64_t count) {
    if (lane() >= count) return 0.0f;
    from += lane() * 4;
    if constexpr (Aligned) return load_global(reinterpret_cast<const float*>(from));
    return as_f32(load_word(from));
  }
  template <bool Aligned>
  static KVCTS_INLINE f32 load_bf16(const byte* from, std::int64_t count) {
    if (lane() >= count) return 0.0f;
    from += lane() * 2;
    u32 half;
    if constexpr (Aligned) {
      half = load_global(reinterpret_cast<const unsigned short*>(from));
    } else {
      half = from[0] | static_cast<u32>(from[1]) << 8;
    }
    return as_f32(half << 16);
  }
  template <bool Aligned>
  static KVCTS_INLINE void store_f32(byte* to, f32 x, std::int64_t count) {
    if (lane() < count) store_one_word<Aligned>(to + lane() * 4, bits(x));
  }

  template <int Bytes, bool Aligned>
  static KVCTS_INLINE void copy_bytes(byte* to, const byte* from) {
    static_assert(Bytes % 8 == 0 && Bytes <= 256);
    if (lane() >= Bytes / 8) return;
    const words<2> x = load_two_words<Aligned>(from + lane() * 8);
    store_two_words<Aligned>(to + lane() * 8, x.w[0], x.w[1]);
  }
  template <int Lanes>
  static KVCTS_INLINE u32 load_block_bytes(const byte* from) {
    return load_global(from + lane() / Lanes);
  }

  static KVCTS_INLINE u32 mul_high(u32 a, u32 b) { return __umulhi(a, b); }
  template <bool Aligned>
  static KVCTS_INLINE u32 gather(const byte* base, u32 index, mask m, u32 otherwise) {
    if (!m) return otherwise;
    return static_cast<u32>(load_i32<Aligned>(base + static_cast<std::int64_t>(index) * 4));
  }
  // Each round the lanes look at 32 values, `step` apart, of those that are not decided.
  template <bool Aligned>
  static KVCTS_INLINE std::int64_t count_not_above(const byte* from, std::int64_t count,
                                                   std::int64_t limit) {
    std::int64_t known = 0;  // that many are not above the limit
    while (known < count) {
      const std::int64_t step = (count - known + 31) / 32;
      const std::int64_t at = known + step * lane();
      const bool below = at < count && load_i32<Aligned>(from + at * 4) <= limit;
      const int found = __popc(__ballot_sync(0xFFFFFFFFu, below));
      if (found == 0) break;
      const std::int64_t end = known + step * found;  // value `end` is above, if there is one
      known = end - step + 1;
      count = end < count ? end : count;
    }
    return known;
  }

  static KVCTS_INLINE f32 negate(f32 x) { return -x; }
  template <bool Aligned>
  static KVCTS_INLINE u32 load_u16(const byte* from) {
    if constexpr (Aligned) return load_global(reinterpret_cast<const unsigned short*>(from));
    return from[0] | static_cast<u32>(from[1]) << 8;
  }
  static KVCTS_INLINE f32 gather_f32(const byte* from, u32 index, mask m) {
    return m ? as_f32(load_word(from + static_cast<std::int64_t>(index) * 4)) : 0.0f;
  }
  static KVCTS_INLINE f32 gather_bf16(const byte* from, u32 index, mask m) {
    return m ? as_f32(load_u16<false>(from + static_cast<std::int64_t>(index) * 2) << 16) : 0.0f;
  }
  template <int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_row_words(byte* to, std::int64_t stride, std::int64_t rows,
                                           u32 x) {
    const int row = static_cast<int>(lane()) / LanesPerRow;
    if (lane() % LanesPerRow == 0 && row < rows) store_one_word<Aligned>(to + row * stride, x);
  }
  static KVCTS_INLINE void store_even_bytes(byte* to, u32 x) {
    if (lane() % 2 == 0) to[lane() / 2] = static_cast<byte>(x);
  }
  template <int LanesPerRow, bool Aligned>
  static KVCTS_INLINE void store_tiles(byte* to, std::int64_t stride, std::int64_t rows, u32 lo,
                                       u32 hi) {
    const int row = static_cast<int>(lane()) / LanesPerRow;
    if (row >= rows) return;
    const u32 in_row = lane() % LanesPerRow;
    store_two_words<Aligned>(to + row * stride + in_row / 2 * 256 + in_row % 2 * 8, lo, hi);
  }

  template <int Words, bool Aligned>
  static KVCTS_INLINE words<Words> load_halves(const byte* from, std::int64_t count) {
    if (count >= 64 * Words) return load_words<Words, 32, Aligned>(from, 0, 1);
    words<Words> x = {};
    KVCTS_UNROLL for (int j = 0; j < 2 * Words; ++j) {
      const std::int64_t i = lane() * (2 * Words) + j;
      if (i < count)
        x.w[j / 2] |= (from[2 * i] | static_cast<u32>(from[2 * i + 1]) << 8) << j % 2 * 16;
    }
    return x;
  }
  template <bool Aligned>
  static KVCTS_INLINE void scatter_words(byte* to, u32 offset, u32 x, mask m) {
    if (m) store_one_word<Aligned>(to + offset, x);
  }

 private:
  static KVCTS_INLINE u32 load_word(const byte* from) {
    return from[0] | static_cast<u32>(from[1]) << 8 | static_cast<u32>(from[2]) << 16 |
           static_cast<u32>(from[3]) << 24;
  }
  template <bool Aligned>
  static KVCTS_INLINE void store_one_word(byte* to, u32 x) {
    if constexpr (Aligned) {
      *reinterpret_cast<u32*>(to) = x;
    } else {
      KVCTS_UNROLL for (int i = 0; i < 4; ++i) to[i] = static_cast<byte>(x >> (8 * i));
    }
  }
  template <bool Aligned>
  static KVCTS_INLINE void store_two_words(byte* to, u32 lo, u32 hi) {
    if constexpr (Aligned) {
      *reinterpret_cast<uint2*>(to) = make_uint2(lo, hi);
    } else {
      store_one_word<false>(to, lo);
      store_one_word<false>(to + 4, hi);
    }
  }
  template <bool Aligned>
  static KVCTS_INLINE words<2> load_two_words(const byte* from) {
    if constexpr (Aligned) {
      const uint2 two = load_global(reinterpret_cast<const uint2*>(from));
      return {{two.x, two.y}};
    }
    return {{load_word(from), load_word(from + 4)}};
  }
};

}  // namespace kvcts::device
