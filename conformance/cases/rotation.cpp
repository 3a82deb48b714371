#include "conformance/cases/rotation.h"

#include <algorithm>

#include "reference/formats/bf16.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::uint16_t one = 0x3F80;

double magnitude(double x) { return x < 0 ? -x : x; }

}  // namespace

double scaled(std::uint64_t n, std::int64_t exponent) {
  double x = static_cast<double>(n);
  for (; exponent > 0; --exponent) x *= 2;
  for (; exponent < 0; ++exponent) x /= 2;
  return x;
}

float draw_factor(draw& from) {
  return float_of((from.one_in(2) ? 0x80000000u : 0u) |
                  static_cast<std::uint32_t>(from.between(119, 126)) << 23 | from.below(1u << 23));
}

std::string_view name_of(turns how) {
  switch (how) {
    case turns::drawn:
      return "drawn";
    case turns::exact:
      return "exact";
    case turns::any_bits:
      return "any";
    case turns::window:
      return "window";
    case turns::hard:
      return "hard";
  }
  return "";
}

std::vector<std::string_view> flags_of(turns how) {
  switch (how) {
    case turns::drawn:
      return {};
    case turns::exact:
      return {"ExactTurns"};
    case turns::any_bits:
      return {"NonFiniteTurns"};
    case turns::window:
      return {"ScaleExponentWindow"};
    case turns::hard:
      return {"FmaContraction"};
  }
  return {};
}

rotation::rotation(draw& from, const rotation_options& options) : options_(options) {
  for (std::int64_t p = 0; p < options_.rows; ++p) {
    row made;
    made.cosines.resize(static_cast<std::size_t>(options_.dims / 2));
    made.sines.resize(made.cosines.size());
    switch (options_.how) {
      case turns::window:
        draw_window(from, made);
        break;
      case turns::hard:
        draw_hard(from, made);
        break;
      default:
        draw_plain(from, p, made);
    }
    rows_.push_back(std::move(made));
  }
}

void rotation::draw_plain(draw& from, std::int64_t number, row& to) const {
  for (std::size_t i = 0; i < to.cosines.size(); ++i) {
    switch (options_.how) {
      case turns::exact:
        to.cosines[i] = number % 4 == 3 ? -1.0F : number % 4 == 1 ? 0.0F : 1.0F;
        to.sines[i] = number % 4 == 1 ? 1.0F : 0.0F;
        break;
      case turns::any_bits:
        to.cosines[i] = from.one_in(2) ? draw_factor(from) : float_of(any_f32(from));
        to.sines[i] = from.one_in(2) ? draw_factor(from) : float_of(any_f32(from));
        break;
      default:
        to.cosines[i] = draw_factor(from);
        to.sines[i] = draw_factor(from);
    }
  }
}

// Pairs (+-1, 0) with sine 0: the even dim becomes +-cosine, the odd one a zero.
void rotation::draw_window(draw& from, row& to) const {
  to.values.assign(static_cast<std::size_t>(options_.dims), 0);
  const auto pairs = static_cast<std::int64_t>(to.cosines.size());
  const std::int64_t pairs_of_block = std::min(options_.block / 2, pairs);
  const block_rules& rules = options_.rules;
  for (std::int64_t first = 0; first < pairs; first += pairs_of_block) {
    const std::int64_t end = std::min(first + pairs_of_block, pairs);
    std::uint32_t amax = 0;
    if (options_.amaxes.empty()) {
      const std::int64_t scale =
          from.between(rules.lowest_scale + 1,
                       std::min<std::int64_t>(126 - rules.limit_exponent, rules.highest_scale));
      amax = static_cast<std::uint32_t>(
                 bf16_normal(false, rules.limit_exponent + scale, rules.limit_mantissa))
             << 16;
    } else {
      amax = options_.amaxes[from.below(options_.amaxes.size())];
    }
    // The windows of a rounded log2 are 0 to 22 ulp wide.
    amax += static_cast<std::uint32_t>(from.one_in(2) ? from.between(-2, 6) : from.between(0, 48));
    const std::int64_t chosen = from.between(first, end - 1);
    for (std::int64_t i = first; i < end; ++i) {
      const std::uint32_t down = from.below(10u << 23);
      to.cosines[static_cast<std::size_t>(i)] = float_of(i == chosen   ? amax
                                                         : amax > down ? amax - down
                                                                       : 0);
      to.values[static_cast<std::size_t>(2 * i)] =
          static_cast<std::uint16_t>(one | (from.one_in(2) ? 0x8000 : 0));
    }
  }
}

double border_value(draw& from, border at, const block_rules& rules, std::int64_t scale) {
  if (at == border::bf16) {
    // 8 significant bits and a half.
    return scaled(257 + 2 * from.below(128), from.between(-10, -6));
  }
  const std::size_t number = from.below(rules.ties.size());
  const std::int64_t exponent = rules.tie_exponent + scale;
  const double tie = scaled(rules.ties[number], exponent);
  if (at == border::code) return tie;
  // The tie goes to the even code: below it where the lower code is even. There the bf16 above the
  // tie has another code, else the one below it.
  const std::uint16_t bits = bf16_scaled(rules.ties[number], exponent);
  const auto beside = static_cast<std::uint16_t>(number % 2 == 0 ? bits + 1 : bits - 1);
  return (tie + double{decode_bf16(beside)}) / 2;
}

// Solves one of a pair's two sums for the sine. Elements of a block stay below limit * 2^scale,
// which its first pair holds.
void rotation::draw_hard(draw& from, row& to) const {
  to.values.assign(static_cast<std::size_t>(options_.dims), 0);
  const auto pairs = static_cast<std::int64_t>(to.cosines.size());
  const block_rules& rules = options_.rules;
  const std::uint16_t limit_bits =
      bf16_normal(false, rules.limit_exponent + options_.scale, rules.limit_mantissa);
  const double limit = double{decode_bf16(limit_bits)};
  for (std::int64_t i = 0; i < pairs; ++i) {
    const auto at = static_cast<std::size_t>(i);
    to.cosines[at] = 1.0F;
    to.sines[at] = 0.0F;
    if (2 * i % options_.block == 0) {
      to.values[2 * at] = limit_bits;
      continue;
    }
    for (int attempt = 0; attempt < 64; ++attempt) {
      const double value = border_value(from, options_.at, rules, options_.scale);
      const double t = from.one_in(2) ? value : -value;
      // bf16 of about the target's magnitude.
      const auto near =
          static_cast<std::int64_t>(bits_of(static_cast<float>(magnitude(t))) >> 23) - 127;
      const auto beside = [&] {
        return bf16_normal(from.one_in(2), near + from.between(-1, 1), from.below(128));
      };
      const std::uint16_t even_bits = beside();
      const std::uint16_t odd_bits = beside();
      const double a = double{decode_bf16(even_bits)};
      const double b = double{decode_bf16(odd_bits)};
      const float cosine = draw_factor(from);
      const double c = double{cosine};
      const bool solve_even = from.one_in(2);
      // Forward: even = a*c - b*s, odd = b*c + a*s; inverse: the other signs of s.
      double s = solve_even ? (a * c - t) / b : (t - b * c) / a;
      if (options_.inverse) s = -s;
      const auto sine = static_cast<float>(s);
      s = options_.inverse ? -double{sine} : double{sine};
      if (magnitude(s) > 8 || magnitude(a * c - b * s) >= limit ||
          magnitude(b * c + a * s) >= limit) {
        continue;
      }
      to.cosines[at] = cosine;
      to.sines[at] = sine;
      to.values[2 * at] = even_bits;
      to.values[2 * at + 1] = odd_bits;
      break;
    }
  }
}

buffer rotation::table(std::string_view name, dtype type, std::int64_t gap) const {
  buffer made = make_buffer(
      name, type, {{options_.rows, options_.dims}, {options_.dims + gap, 1}, gap == 0 ? 0 : 4});
  const std::int64_t half = options_.dims / 2;
  const auto put_at = [&](std::int64_t p, std::int64_t i, float x) {
    std::byte* to = made.view().element(p, i);
    if (type == dtype::f32) {
      store(to, x);
    } else {
      store(to, static_cast<std::uint16_t>(bits_of(x) >> 16));
    }
  };
  for (std::int64_t p = 0; p < options_.rows; ++p) {
    const row& from = rows_[static_cast<std::size_t>(p)];
    for (std::int64_t i = 0; i < half; ++i) {
      put_at(p, i, from.cosines[static_cast<std::size_t>(i)]);
      put_at(p, half + i, from.sines[static_cast<std::size_t>(i)]);
    }
  }
  return made;
}

void rotation::put(std::int64_t position, std::uint16_t* rotated) const {
  const row& from = rows_[static_cast<std::size_t>(position)];
  std::copy(from.values.begin(), from.values.end(), rotated);
}

}  // namespace kvcts
