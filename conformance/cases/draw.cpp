#include "conformance/cases/draw.h"

#include <algorithm>

namespace kvcts {
namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint64_t rotate(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

constexpr std::uint16_t sign_bit = 0x8000;
constexpr std::uint16_t infinity_bits = 0x7F80;
constexpr std::uint16_t largest_bits = 0x7F7F;

std::uint16_t with_sign(draw& from, std::uint16_t magnitude) {
  return static_cast<std::uint16_t>(magnitude | (from.one_in(2) ? sign_bit : 0));
}

std::uint16_t any_nan(draw& from) {
  return with_sign(from, static_cast<std::uint16_t>(infinity_bits | (1 + from.below(127))));
}

// The exponent of a scale, anywhere between the floor and the largest that bf16 reaches.
std::int64_t any_scale(draw& from, const block_rules& rules) {
  return from.between(rules.lowest_scale + 1,
                      std::min(126 - rules.limit_exponent, rules.highest_scale));
}

std::uint16_t limit_at(const block_rules& rules, std::int64_t scale) {
  return bf16_normal(false, rules.limit_exponent + scale, rules.limit_mantissa);
}

// Finite magnitudes not above `amax`, spread over a few binades below it, zeros among them.
std::uint16_t below_amax(draw& from, std::uint16_t amax) {
  if (from.one_in(16)) return with_sign(from, 0);
  const std::int64_t down = from.between(0, 12 * 128);
  return with_sign(from, static_cast<std::uint16_t>(std::max<std::int64_t>(amax - down, 0)));
}

void fill_below(draw& from, std::uint16_t amax, std::uint16_t* to, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) to[i] = below_amax(from, amax);
  to[from.below(static_cast<std::uint64_t>(elements))] = with_sign(from, amax);
}

void fill_ties(draw& from, const block_rules& rules, std::int64_t number, std::uint16_t* to,
               std::int64_t elements) {
  const std::int64_t scale = any_scale(from, rules);
  const std::size_t count = rules.ties.size();
  // The blocks of a case walk through the table, so that every tie is met soon.
  std::size_t next = static_cast<std::size_t>(number * (elements - 1) / 3) % count;
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto tie = bf16_scaled(rules.ties[next], rules.tie_exponent + scale);
    const auto beside = static_cast<std::int64_t>((i + number) % 3) - 1;  // -1, 0, +1 ulp
    to[i] = with_sign(from, static_cast<std::uint16_t>(std::max<std::int64_t>(tie + beside, 0)));
    if (i % 3 == 2) next = (next + 1) % count;
  }
  to[from.below(static_cast<std::uint64_t>(elements))] = with_sign(from, limit_at(rules, scale));
}

}  // namespace

draw::draw(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = splitmix(seed);
}

std::uint64_t draw::bits() {
  const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = rotate(state_[3], 45);
  return result;
}

std::uint32_t draw::below(std::uint64_t n) {
  return static_cast<std::uint32_t>(((bits() >> 32) * n) >> 32);
}

std::int64_t draw::between(std::int64_t lowest, std::int64_t highest) {
  return lowest + below(static_cast<std::uint64_t>(highest - lowest + 1));
}

std::uint64_t seed_of(std::uint64_t seed, std::string_view kernel, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  const auto mix = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    hash = (hash ^ 0xFFu) * 0x100000001B3u;
  };
  mix(kernel);
  mix(name);
  return splitmix(seed) ^ hash;
}

std::uint16_t bf16_normal(bool negative, std::int64_t exponent, std::uint32_t mantissa) {
  return static_cast<std::uint16_t>((negative ? sign_bit : 0) | ((exponent + 127) << 7) | mantissa);
}

std::uint16_t bf16_scaled(std::uint64_t n, std::int64_t exponent) {
  if (n == 0) return 0;
  while (n < 128) {
    n <<= 1;
    --exponent;
  }
  while (n >= 256) {
    n >>= 1;
    ++exponent;
  }
  const std::int64_t binade = exponent + 7;  // n * 2^exponent = (n/128) * 2^binade
  if (binade > 127) return largest_bits;
  if (binade >= -126) return bf16_normal(false, binade, static_cast<std::uint32_t>(n - 128));
  const std::int64_t down = -126 - binade;
  return static_cast<std::uint16_t>(down < 8 ? n >> down : 0);
}

std::uint32_t any_f32(draw& from) {
  if (from.one_in(8)) {
    constexpr std::uint32_t edges[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001,
                                       0xFF800001, 0x00000001, 0x807FFFFF, 0x7F7FFFFF, 0x3F800001};
    return edges[from.below(std::size(edges))];
  }
  if (from.one_in(4)) return static_cast<std::uint32_t>(from.bits());
  return static_cast<std::uint32_t>((from.one_in(2) ? 0x80000000u : 0u) |
                                    (static_cast<std::uint32_t>(from.between(115, 130)) << 23) |
                                    from.below(1u << 23));
}

std::string_view name_of(content what) {
  switch (what) {
    case content::ordinary:
      return "ordinary";
    case content::any_bits:
      return "any";
    case content::ties:
      return "ties";
    case content::exact_scale:
      return "exact";
    case content::boundary:
      return "boundary";
    case content::powers:
      return "powers";
    case content::distinct:
      return "distinct";
    case content::floor:
      return "floor";
    case content::subnormal:
      return "subnormal";
    case content::zero:
      return "zero";
    case content::huge:
      return "huge";
    case content::infinite:
      return "infinite";
    case content::nan:
      return "nan";
    case content::all_nan:
      return "allnan";
    case content::mixed:
      return "mixed";
    case content::quotient:
      return "quotient";
    case content::window:
      return "window";
    case content::divided:
      return "divided";
  }
  return "";
}

std::vector<std::string_view> flags_of(content what) {
  switch (what) {
    case content::ordinary:
      return {};
    case content::any_bits:
      return {"AnyBits"};
    case content::ties:
      return {"TieToEven"};
    case content::exact_scale:
      return {"ExactPowerOfTwoScale"};
    case content::boundary:
      return {"ScaleBoundary"};
    case content::powers:
      return {"PowerOfTwo"};
    case content::distinct:
      return {"DistinctScales"};
    case content::floor:
      return {"AmaxFloor"};
    case content::subnormal:
      return {"SubnormalAmax"};
    case content::zero:
      return {"ZeroBlock", "SignedZero"};
    case content::huge:
      return {"HugeAmax"};
    case content::infinite:
      return {"NonFinite", "Saturation"};
    case content::nan:
      return {"NonFinite"};
    case content::all_nan:
      return {"AllNaN", "NonFinite"};
    case content::mixed:
      return {"MixedBlocks", "NonFinite"};
    case content::quotient:
    case content::window:
      return {"ScaleExponentWindow"};
    case content::divided:
      return {"TieToEven"};
  }
  return {};
}

double block_rules::limit() const {
  return (1 + limit_mantissa / 128.0) * static_cast<double>(1 << limit_exponent);
}

block_rules e2m1_rules() {
  block_rules rules;
  // .25 .75 1.25 1.75 2.5 3.5 5
  rules.ties = {1, 3, 5, 7, 10, 14, 20};
  rules.tie_exponent = -2;
  rules.limit_mantissa = 64;  // 6 = 1.5 * 2^2
  rules.limit_exponent = 2;
  rules.lowest_scale = -126;
  rules.floor_bits = 0x01C0;  // 6 * 2^-126
  rules.floor_f32 = 0x01C00000;
  return rules;
}

block_rules e4m3_rules(fp8_format format) {
  block_rules rules;
  const bool fnuz = format == fp8_format::e4m3fnuz;
  // Codes 0 .. limit in units of the smallest one; a midpoint is half the sum of two neighbours.
  const auto value = [](std::uint64_t code) {
    const std::uint64_t exponent = code >> 3;
    const std::uint64_t mantissa = code & 7;
    return exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);
  };
  for (std::uint64_t code = 0; code < 0x7E; ++code) {
    rules.ties.push_back(value(code) + value(code + 1));
  }
  rules.tie_exponent = fnuz ? -11 : -10;  // half of 2^-10, of 2^-9
  rules.limit_mantissa = 96;              // 448 = 1.75 * 2^8, 224 = 1.75 * 2^7
  rules.limit_exponent = fnuz ? 7 : 8;
  rules.lowest_scale = fnuz ? -21 : -22;  // ceil(log2(1e-4 / 224)), (1e-4 / 448)
  rules.floor_bits = 0x38D2;              // the bf16 next to 1e-4
  rules.floor_f32 = 0x38D1B717;
  return rules;
}

block_rules e4m3_rules_down_to(fp8_format format, std::int64_t lowest) {
  block_rules rules = e4m3_rules(format);
  rules.lowest_scale = lowest;
  rules.floor_bits = limit_at(rules, lowest);
  rules.floor_f32 = static_cast<std::uint32_t>(rules.floor_bits) << 16;
  return rules;
}

block_rules e4m3_rules_low_floor() {
  block_rules rules = e4m3_rules(fp8_format::e4m3fn);
  rules.lowest_scale = -42;   // ceil(log2(1e-10 / 448))
  rules.floor_bits = 0x2EDC;  // the bf16 next to 1e-10
  return rules;
}

block_rules nvfp4_rules() {
  block_rules rules = e2m1_rules();
  rules.lowest_scale = -9;    // the smallest E4M3 subnormal
  rules.highest_scale = 8;    // 256 of 448
  rules.floor_bits = 0x3C40;  // 6 * 2^-9
  return rules;
}

void fill_block(draw& from, content what, const block_rules& rules, std::int64_t number,
                std::uint16_t* to, std::int64_t elements) {
  const auto any_place = [&] { return from.below(static_cast<std::uint64_t>(elements)); };
  switch (what) {
    case content::ordinary:
      for (std::int64_t i = 0; i < elements; ++i) {
        to[i] = bf16_normal(from.one_in(2), from.between(-6, 5), from.below(128));
      }
      return;
    case content::any_bits:
      for (std::int64_t i = 0; i < elements; ++i) {
        to[i] = with_sign(from, static_cast<std::uint16_t>(from.below(infinity_bits)));
      }
      return;
    case content::ties:
      fill_ties(from, rules, number, to, elements);
      return;
    case content::exact_scale:
      fill_below(from, limit_at(rules, any_scale(from, rules)), to, elements);
      return;
    case content::boundary: {
      const auto beside = static_cast<int>(number % 3) - 1;
      fill_below(from, static_cast<std::uint16_t>(limit_at(rules, any_scale(from, rules)) + beside),
                 to, elements);
      return;
    }
    case content::powers: {
      const std::int64_t highest = from.between(-126, 127);
      for (std::int64_t i = 0; i < elements; ++i) {
        const std::int64_t exponent = std::max<std::int64_t>(highest - from.below(14), -126);
        to[i] = bf16_normal(from.one_in(2), exponent, 0);
      }
      to[any_place()] = bf16_normal(from.one_in(2), highest, 0);
      return;
    }
    case content::distinct: {
      // 101 is coprime to the number of scales: no two of as many blocks in a row share one.
      const std::int64_t lowest = rules.lowest_scale + 1;
      const std::int64_t scales =
          std::min(127 - rules.limit_exponent, rules.highest_scale + 1) - lowest;
      fill_below(from, limit_at(rules, lowest + (number * 101) % scales), to, elements);
      return;
    }
    case content::floor:
      fill_below(from, static_cast<std::uint16_t>(rules.floor_bits + from.between(-3, 3)), to,
                 elements);
      return;
    case content::subnormal:
      for (std::int64_t i = 0; i < elements; ++i) {
        to[i] = with_sign(from, static_cast<std::uint16_t>(from.below(128)));
      }
      to[any_place()] = with_sign(from, static_cast<std::uint16_t>(1 + from.below(127)));
      return;
    case content::zero:
      for (std::int64_t i = 0; i < elements; ++i) to[i] = with_sign(from, 0);
      return;
    case content::huge:
      for (std::int64_t i = 0; i < elements; ++i) {
        to[i] = bf16_normal(from.one_in(2), from.between(126, 127), from.below(128));
      }
      if (from.one_in(3)) to[any_place()] = with_sign(from, largest_bits);
      return;
    case content::infinite:
      for (std::int64_t i = 0; i < elements; ++i) {
        to[i] = with_sign(from, static_cast<std::uint16_t>(from.below(infinity_bits)));
      }
      for (std::uint32_t n = 1 + from.below(3); n > 0; --n) {
        to[any_place()] = with_sign(from, infinity_bits);
      }
      return;
    case content::nan:
      fill_below(from, limit_at(rules, from.between(-4, 4)), to, elements);
      for (std::uint32_t n = 1 + from.below(3); n > 0; --n) to[any_place()] = any_nan(from);
      return;
    case content::all_nan:
      for (std::int64_t i = 0; i < elements; ++i) to[i] = any_nan(from);
      return;
    case content::mixed:
      fill_block(from, all_contents[from.below(std::size(all_contents) - 1)], rules, number, to,
                 elements);
      return;
    case content::quotient:
    case content::window:
    case content::divided:  // of bf16 nothing special
      fill_block(from, content::ordinary, rules, number, to, elements);
      return;
  }
}

void fill_row(draw& from, content what, const block_rules& rules, std::int64_t& number,
              std::uint16_t* to, std::int64_t elements, std::int64_t block) {
  for (std::int64_t d = 0; d < elements; d += block) {
    fill_block(from, what, rules, number++, to + d, std::min(block, elements - d));
  }
}

}  // namespace kvcts
