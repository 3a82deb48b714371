// RN(e^x) of x <= 0, for the profile without approximate instructions.
#pragma once

#include <cstdint>

namespace kvcts::KVCTS_TARGET {

KVCTS_INLINE std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDACC__
  return __umul64hi(a, b);
#else
  __extension__ typedef unsigned __int128 wide;
  return static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
#endif
}

// The bits of RN(e^-m), m >= 0 given by its bits. In fixed point: m = k log 2 + r, and the series
// of e^-r by Horner's rule with an error of about 2^-61. No f32 brings e^x nearer to a tie than
// 2^-53 of it, so that one rounding of that is the right one.
KVCTS_INLINE std::uint32_t exp_of_minus(std::uint32_t m) {
  if (m < 0x32800000u) return 0x3F800000u;  // below 2^-26: 1
  if (m > 0x42D00000u) return 0;            // above 104: below 2^-150
  // m in units of 2^-64: whole + part
  const int exponent = static_cast<int>(m >> 23) - 127;  // -26..6
  const std::uint64_t mantissa = (m & 0x7FFFFFu) | 0x800000u;
  const std::uint64_t whole = exponent >= 0 ? mantissa >> (23 - exponent) : 0;
  const std::uint64_t part = mantissa << (41 + exponent);   // the whole bits fall off the top
  constexpr std::uint64_t log2_high = 0xB17217F7D1CF79ABu;  // log 2 in units of 2^-64
  constexpr std::uint64_t log2_low = 0xC9E3B398u;           // and 32 bits more
  constexpr std::uint64_t inverse_log2 = 0xB8AA3B29u;       // 1/log 2 in units of 2^-31
  // k is right or one too small.
  std::uint64_t k = ((whole << 16 | part >> 48) * inverse_log2) >> 47;
  const std::uint64_t down = k * log2_high + (k * log2_low >> 32);
  const std::uint64_t down_whole = high_product(k, log2_high) + (down < k * log2_high ? 1 : 0);
  std::uint64_t r = part - down;
  std::uint64_t rest = whole - down_whole - (part < down ? 1 : 0);
  if (rest != 0 || r >= log2_high) {
    ++k;
    r -= log2_high;
  }
  constexpr std::uint64_t one = std::uint64_t{1} << 63;
  std::uint64_t sum = one;
  for (unsigned n = 22; n >= 1; --n) sum = one - high_product(r, sum) / n;

  // sum * 2^(-63 - k), in (1/2, 1] * 2^-k, in units of the f32's last place
  const unsigned shift = k < 126 ? 39 : static_cast<unsigned>(k) - 86;
  const std::uint64_t kept = shift > 63 ? 0 : sum >> shift;
  const std::uint64_t round = shift > 64 ? 0 : sum >> (shift - 1) & 1;
  const std::uint64_t field = k < 126 ? (125 - k) << 23 : 0;
  return static_cast<std::uint32_t>(field + kept + round);
}

}  // namespace kvcts::KVCTS_TARGET
