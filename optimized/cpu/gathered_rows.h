// A token's record as 512 bf16 on the CPU, in vectors of 16-bit lanes that lie in memory's order.
// Of E4M3 records only those without NaN whose every scale keeps the numbers normal in bf16: there
// a product is an addition to the exponent.
#pragma once

#include "optimized/warp/group.h"

namespace kvcts::KVCTS_TARGET {

constexpr int half_word_lanes = KVCTS_VECTOR_BYTES / 2;
typedef std::uint8_t vec_code __attribute__((vector_size(KVCTS_VECTOR_BYTES / 2)));

template <bool Fnuz>
KVCTS_INLINE vec_code is_nan_code(const vec_code& code) {
  return (vec_code)(Fnuz ? code == 0x80 : (code & 0x7F) == 0x7F);
}

// E4M3 numbers as bf16, in units of 1/128 of an octave and from the least number on. The codes'
// magnitudes count along a concave curve of four lines, three for the subnormal numbers: eighths of
// an octave for the normal ones. 0 is on none of them.
#if KVCTS_VECTOR_BYTES > 16
// How many eighths the magnitudes 1..7 lie below the normal numbers' line; the 128 of 0 tell it
// apart.
KVCTS_INLINE vec_code eighths_below(const vec_code& magnitude) {
  // 8..15 find the zeros; from 16 on the index has its high bit set, and the look-up gives 0.
  const auto below = _mm_setr_epi8(-128, 17, 10, 7, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0);
#if KVCTS_VECTOR_BYTES == 64
  return (vec_code)_mm256_shuffle_epi8(
      _mm256_broadcastsi128_si256(below),
      _mm256_adds_epu8((__m256i)magnitude, _mm256_set1_epi8(0x70)));
#else
  return (vec_code)_mm_shuffle_epi8(below, _mm_adds_epu8((__m128i)magnitude, _mm_set1_epi8(0x70)));
#endif
}
// Each with its sign.
KVCTS_INLINE vec_i16 widened(const vec_code& x) {
#if KVCTS_VECTOR_BYTES == 64
  return (vec_i16)_mm512_maskz_cvtepi8_epi16(0xFFFFFFFF, (__m256i)x);
#else
  return (vec_i16)_mm256_cvtepi8_epi16((__m128i)x);
#endif
}
KVCTS_INLINE vec_i16 scaled_e4m3(const vec_code& code, std::int16_t exponent) {
  const vec_code magnitude = code & 0x7F;
  const vec_i16 line = widened(magnitude - eighths_below(magnitude));
  const vec_i16 number = (line << 4) + static_cast<std::int16_t>(exponent + 256);
  return (line == -128 ? vec_i16{} : number) | (widened(code) & -0x8000);
}
#else
KVCTS_INLINE vec_i16 scaled_e4m3(const vec_code& code, std::int16_t exponent) {
  const auto smaller = [](const vec_i16& a, const vec_i16& b)
                           KVCTS_INLINE_LAMBDA { return a < b ? a : b; };
  const vec_i16 wide = __builtin_convertvector(code, vec_i16);
  const vec_i16 magnitude = wide & 0x7F;
  const vec_i16 line = smaller(smaller((magnitude << 4) + 256, (magnitude << 5) + 128),
                               smaller(magnitude << 6, (magnitude << 7) - 128));
  const vec_i16 number = magnitude == 0 ? vec_i16{} : line + exponent;
  return number | ((wide << 8) & -0x8000);
}
#endif

// False, and the whole row is to be made otherwise, where a code is NaN, or where bf16 has not each
// E4M3 number times the scales 2^(byte - 127) as a normal one: from 2^-10 (FNUZ) to 448.
template <int Blocks, int BlockDims, bool Fnuz>
KVCTS_INLINE bool dequantize_e4m3_blocks(byte* to, const byte* codes, const byte* scales) {
  static_assert(BlockDims % half_word_lanes == 0);
  std::int16_t exponents[Blocks];  // of the least numbers, 2^-9 or, in FNUZ, 2^-10
  int outside = 0;
  for (int b = 0; b < Blocks; ++b) {
    exponents[b] = static_cast<std::int16_t>((scales[b] - (Fnuz ? 10 : 9)) * 128);
    outside |= scales[b] < 11 || scales[b] > 246 ? 1 : 0;
  }
  if (outside != 0) return false;
  vec_code nan = {};
  for (int b = 0; b < Blocks; ++b) {
    KVCTS_UNROLL for (int i = 0; i < BlockDims; i += half_word_lanes) {
      vec_code code;
      __builtin_memcpy(&code, codes + b * BlockDims + i, sizeof code);
      nan |= is_nan_code<Fnuz>(code);
      store_vector(to + (b * BlockDims + i) * 2, (vec_u32)scaled_e4m3(code, exponents[b]));
    }
  }
  std::uint64_t parts[sizeof nan / 8];
  __builtin_memcpy(parts, &nan, sizeof nan);
  std::uint64_t any = 0;
  for (const std::uint64_t part : parts) any |= part;
  return any == 0;
}

// Every E2M1 code under every E4M3 scale as bf16: significands of 2 and 4 bits, so that each
// product is exact.
struct e2m1_products {
#if KVCTS_VECTOR_BYTES > 16
  byte bytes[256][2][16];  // the low ones of the 16 codes, then the high ones
#else
  std::uint16_t words[256][16];
#endif
};
constexpr std::uint32_t e2m1_product(std::uint32_t scale, std::uint32_t code) {
  constexpr std::uint32_t halves[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  const std::uint32_t magnitude = scale & 0x7Fu;
  if (magnitude == 0x7Fu) return 0x7FFFu;
  // In units of 2^-9; a code's -0 is +0.
  const std::uint32_t units =
      magnitude < 8u ? magnitude : (8u | (magnitude & 7u)) << ((magnitude >> 3) - 1u);
  const std::uint32_t sign = ((scale >> 7) ^ (code > 8u ? 1u : 0u)) << 15;
  const std::uint32_t product = units * halves[code & 7u];
  if (product == 0) return sign;
  std::uint32_t top = 0;
  while ((product >> top) > 1u) ++top;
  return sign | (top + 127u - 10u) << 7 | ((product << 7 >> top) & 0x7Fu);
}
constexpr e2m1_products all_e2m1_products() {
  e2m1_products r = {};
  for (std::uint32_t scale = 0; scale < 256; ++scale) {
    for (std::uint32_t code = 0; code < 16; ++code) {
      const std::uint32_t product = e2m1_product(scale, code);
#if KVCTS_VECTOR_BYTES > 16
      r.bytes[scale][0][code] = static_cast<byte>(product);
      r.bytes[scale][1][code] = static_cast<byte>(product >> 8);
#else
      r.words[scale][code] = static_cast<std::uint16_t>(product);
#endif
    }
  }
  return r;
}
static constexpr e2m1_products products_of_e2m1 = all_e2m1_products();

// Blocks of 16 dims, the even one in the low nibble.
template <int Blocks>
KVCTS_INLINE void dequantize_e2m1_blocks(byte* to, const byte* codes, const byte* scales) {
#if KVCTS_VECTOR_BYTES > 16
  const auto table = [&](int block, int part) KVCTS_INLINE_LAMBDA {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(products_of_e2m1.bytes[scales[block]][part]));
  };
  const auto store = [&](int block, const __m128i& in_order) KVCTS_INLINE_LAMBDA {
    const __m128i low = _mm_shuffle_epi8(table(block, 0), in_order);
    const __m128i high = _mm_shuffle_epi8(table(block, 1), in_order);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + block * 32), _mm_unpacklo_epi8(low, high));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + block * 32 + 16),
                     _mm_unpackhi_epi8(low, high));
  };
  const __m128i nibble = _mm_set1_epi8(15);
  for (int b = 0; b < Blocks; b += 2) {
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + b * 8));
    const __m128i even = _mm_and_si128(pairs, nibble);
    const __m128i odd = _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble);
    store(b, _mm_unpacklo_epi8(even, odd));
    store(b + 1, _mm_unpackhi_epi8(even, odd));
  }
#else
  for (int b = 0; b < Blocks; ++b) {
    const std::uint16_t(&table)[16] = products_of_e2m1.words[scales[b]];
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t even = table[codes[b * 8 + i] & 15u];
      const std::uint32_t odd = table[codes[b * 8 + i] >> 4];
      const std::uint32_t word = even | odd << 16;
      __builtin_memcpy(to + b * 32 + i * 4, &word, 4);
    }
  }
#endif
}

}  // namespace kvcts::KVCTS_TARGET
