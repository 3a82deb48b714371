// Raw-bit generators: integers and bf16 patterns, equal on every platform.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/formats/e4m3.h"

namespace kvcts {

// xoshiro256**, seeded through splitmix64.
class draw {
 public:
  explicit draw(std::uint64_t seed);
  std::uint64_t bits();
  // 0 .. n-1, n in [1, 2^32).
  std::uint32_t below(std::uint64_t n);
  std::int64_t between(std::int64_t lowest, std::int64_t highest);
  bool one_in(std::uint32_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_[4];
};

// One stream a case: the suite's seed, mixed with the kernel's and the case's name.
std::uint64_t seed_of(std::uint64_t seed, std::string_view kernel, std::string_view name);

// bf16 bits of +-(1 + mantissa/128) * 2^exponent, exponent in [-126, 127].
std::uint16_t bf16_normal(bool negative, std::int64_t exponent, std::uint32_t mantissa);
// bf16 bits of n * 2^exponent, n of at most 8 significant bits; below the subnormals it truncates,
// past the largest number it gives that.
std::uint16_t bf16_scaled(std::uint64_t n, std::int64_t exponent);

// f32 bits: mostly magnitudes within 2^-12 .. 2^4, some of any pattern, some at the borders.
std::uint32_t any_f32(draw& from);

// What a block of elements that share one scale holds.
enum class content : std::uint8_t {
  ordinary,     // magnitudes within 2^-6 .. 2^6
  any_bits,     // every finite bit pattern
  ties,         // every midpoint of two codes, and its neighbours +-1 ulp
  exact_scale,  // amax = limit * 2^e: the quotient is a power of two
  boundary,     // amax one ulp below, at and above that
  powers,       // powers of two only
  distinct,     // every block has another scale than its neighbours
  floor,        // amax at the op's floor and beside it
  subnormal,    // bf16 subnormals only
  zero,         // +0 and -0
  huge,         // the largest two exponents
  infinite,     // infinities among finite numbers
  nan,          // NaNs of both signs, any payload, among finite numbers
  all_nan,      // NaNs only
  mixed,        // each block draws one of the above
  // Of f32 blocks alone:
  quotient,  // an amax whose scale depends on how it is divided by the limit
  window,    // an amax just above limit * 2^e, whose scale is 2^e however it is divided
  divided    // ties of the quotient by a scale that is no power of two
};
// Those that `mixed` draws from, and itself.
constexpr content all_contents[] = {
    content::ordinary, content::any_bits, content::ties,  content::exact_scale, content::boundary,
    content::powers,   content::distinct, content::floor, content::subnormal,   content::zero,
    content::huge,     content::infinite, content::nan,   content::all_nan,     content::mixed};
std::string_view name_of(content what);
std::vector<std::string_view> flags_of(content what);

// What the generator must know of the element format and the scale rule of a block.
struct block_rules {
  // Midpoints of neighbouring codes, in units of 2^tie_exponent at scale 1.
  std::vector<std::uint64_t> ties;
  std::int64_t tie_exponent = 0;
  // The limit is (1 + limit_mantissa/128) * 2^limit_exponent: 6, 448 or 224.
  std::uint32_t limit_mantissa = 0;
  std::int64_t limit_exponent = 0;
  // The smallest scale exponent that the op reaches (its amax floor), and the bf16 nearest the
  // floor.
  std::int64_t lowest_scale = 0;
  std::uint16_t floor_bits = 0;
  std::uint32_t floor_f32 = 0;  // the floor itself, f32 bits
  // The largest scale exponent, where something else than bf16 limits it.
  std::int64_t highest_scale = 127;

  double limit() const;
};
block_rules e2m1_rules();
// amax floored at 1e-4.
block_rules e4m3_rules(fp8_format format);
// E4M3 with no floor but that of the scale, 2^lowest.
block_rules e4m3_rules_down_to(fp8_format format, std::int64_t lowest);
// E4M3 OCP, amax floored at 1e-10.
block_rules e4m3_rules_low_floor();
// E2M1 under an E4M3 scale.
block_rules nvfp4_rules();

// Fills one block. `number` counts the blocks of a case: `distinct` turns with it.
void fill_block(draw& from, content what, const block_rules& rules, std::int64_t number,
                std::uint16_t* to, std::int64_t elements);
// Fills a row, block after block (the last one may be shorter), and counts the blocks.
void fill_row(draw& from, content what, const block_rules& rules, std::int64_t& number,
              std::uint16_t* to, std::int64_t elements, std::int64_t block);

}  // namespace kvcts
