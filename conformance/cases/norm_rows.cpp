#include "conformance/cases/norm_rows.h"

#include <algorithm>
#include <cmath>

#include "conformance/cases/rotation.h"
#include "reference/formats/bf16.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/log2.h"
#include "reference/numerics/mufu.h"
#include "reference/numerics/rules.h"

namespace kvcts {
namespace {

constexpr std::uint32_t magnitude_mask = 0x7FFFFFFF, infinity = 0x7F800000;

// The middle of two bf16 numbers and its neighbours among them.
std::uint32_t low_bits(draw& from) {
  constexpr std::uint32_t middle[] = {0x7FFF, 0x8000, 0x8001};
  return from.one_in(4) ? middle[from.below(3)] : from.below(0x10000);
}

void fill_hard_candidate(draw& from, norm_source source, std::uint16_t* to, std::int64_t elements) {
  // The sum of all is far below the largest ones: what is lost on the way shows.
  const bool wide = source == norm_source::hard_sum;
  for (std::int64_t i = 0; i < elements; ++i) {
    if (wide && i % 2 == 1 && from.one_in(2)) {
      to[i] = static_cast<std::uint16_t>((to[i - 1] ^ 0x8000) + from.below(2));
      continue;
    }
    const std::int64_t exponent = wide ? from.between(-13, 8) : from.between(-2, 1);
    to[i] = bf16_normal(from.one_in(2), exponent, from.below(128));
  }
  for (std::int64_t i = elements - 1; i > 0; --i) {
    std::swap(to[i], to[from.below(static_cast<std::uint64_t>(i) + 1)]);
  }
}

// What the tree decides of a row.
struct outcome {
  float mean = 0, root = 0;
  bool operator==(const outcome&) const = default;
};
outcome outcome_of(const std::vector<float>& x, const reduction_tree& tree, const row_norm& norm,
                   const Rules& rules) {
  const auto n = static_cast<std::int64_t>(x.size());
  outcome made;
  std::vector<float> d = x;
  if (norm.layer) {
    made.mean = mul(rules.sum(tree, x.data(), n), 1.0F / static_cast<float>(n));
    for (float& value : d) value = sub(value, made.mean);
  }
  made.root = rules.rsqrt(
      rules.variance(rules.sum_of_squares(tree, d.data(), n, 0), n, static_cast<float>(norm.eps)));
  return made;
}

// How many of the ways to go wrong change the row's mean or root.
int faults_shown(const std::vector<float>& x, const row_norm& norm) {
  static const Rules nvidia = rules_for(profile::nvidia);
  static const Rules ieee = rules_for(profile::ieee);
  const outcome right = outcome_of(x, norm.tree, norm, nvidia);
  int shown = right == outcome_of(x, norm.tree, norm, ieee) ? 0 : 1;
  reduction_tree neighbours = norm.tree;
  neighbours.lane_pairing = pairing::doubling;
  const std::int64_t warps = norm.tree.warps == 1 ? 2 : norm.tree.warps / 2;
  reduction_tree rounded = norm.tree;
  rounded.squares = square_step::separate;
  for (const reduction_tree& wrong :
       {neighbours, tree_of(norm.tree.padded, 2, static_cast<int>(warps)), rounded}) {
    if (right != outcome_of(x, wrong, norm, nvidia)) ++shown;
  }
  return shown;
}

// The same of single steps: the last two over lanes, those over warps, lanes of other widths, no
// tree at all, the halves of a row inside one warp.
int steps_shown(const std::vector<float>& x, const row_norm& norm) {
  static const Rules rules = rules_for(profile::nvidia);
  const reduction_tree& tree = norm.tree;
  const auto n = static_cast<std::int64_t>(x.size());
  const outcome right = outcome_of(x, tree, norm, rules);
  reduction_tree warps = tree;
  warps.warp_pairing = pairing::doubling;
  reduction_tree narrow = tree;
  narrow.per = tree.per == 1 ? 2 : 1;
  reduction_tree rounded = tree;  // once more: few rows show it
  rounded.squares = square_step::separate;
  int shown = 0;
  for (const reduction_tree& wrong : {warps, narrow, rounded}) {
    if (right != outcome_of(x, wrong, norm, rules)) ++shown;
  }
  if (right != outcome_of(row_of_swapped_lanes(tree, x.data(), n), tree, norm, rules)) ++shown;
  std::vector<float> d = x;
  for (float& value : d) value = sub(value, right.mean);
  const auto is_other = [&](float squares) {
    return right.root != rules.rsqrt(rules.variance(squares, n, static_cast<float>(norm.eps)));
  };
  float in_order = mul(d[0], d[0]);
  for (std::size_t i = 1; i < d.size(); ++i) in_order = fma(d[i], d[i], in_order);
  if (is_other(in_order)) ++shown;
  if (is_other(rules.sum_of_squares(tree, d.data(), n, n - 1))) ++shown;
  return shown;
}

void fill_hard_row(draw& from, norm_source source, const row_norm& norm, std::uint16_t* to,
                   std::int64_t elements) {
  // Squares of bf16 are exact: an RMSNorm cannot show how they are rounded.
  const int most = (norm.layer ? 4 : 3) + (norm.every_step ? 6 : 0);
  // Long rows take longer and show more.
  const int many = static_cast<int>(std::clamp<std::int64_t>(128 * 240 / elements, 64, 240));
  const int rounds = norm.every_step ? many : norm.layer ? 64 : 16;
  int best = -1;
  std::vector<std::uint16_t> row(static_cast<std::size_t>(elements));
  for (int round = 0; round < rounds && best < most; ++round) {
    fill_hard_candidate(from, source, row.data(), elements);
    std::vector<float> x;
    for (const std::uint16_t bits : row) x.push_back(decode_bf16(bits));
    const int shown = faults_shown(x, norm) + (norm.every_step ? steps_shown(x, norm) : 0);
    if (shown <= best) continue;
    best = shown;
    std::copy(row.begin(), row.end(), to);
  }
}

double value_at(const buffer& rows, std::int64_t row, std::int64_t dim) {
  return double{decode_bf16(load<std::uint16_t>(rows.view().element(row, dim)))};
}

std::uint32_t bits_of_double(double value) { return bits_of(static_cast<float>(value)); }

}  // namespace

std::int64_t place_of_swapped_lanes(const reduction_tree& tree, std::int64_t element) {
  if (tree.live_lanes() < 4) return element;
  const std::int64_t lane = element / tree.per;
  const std::int64_t other = (lane & ~std::int64_t{3}) | (lane & 1) << 1 | (lane >> 1 & 1);
  return other * tree.per + element % tree.per;
}
std::vector<float> row_of_swapped_lanes(const reduction_tree& tree, const float* x,
                                        std::int64_t n) {
  std::vector<float> row(static_cast<std::size_t>(tree.padded));
  for (std::int64_t i = 0; i < n; ++i) {
    row[static_cast<std::size_t>(place_of_swapped_lanes(tree, i))] = x[i];
  }
  return row;
}

std::string_view name_of(norm_source source) {
  switch (source) {
    case norm_source::rows:
      return "rows";
    case norm_source::parameters:
      return "through";
    case norm_source::hard_sum:
      return "hardsum";
    case norm_source::hard_squares:
      return "hardsquares";
  }
  return "";
}

std::vector<std::string_view> flags_of(norm_source source, content what) {
  if (is_hard(source)) return {"FmaContraction", "OrderSensitive"};
  std::vector<std::string_view> flags = flags_of(what);
  if (source == norm_source::parameters) {
    flags.emplace_back("NormBypass");
    if (what == content::boundary) flags.emplace_back("ScaleExponentWindow");
    return flags;
  }
  // What a norm leaves of the others is nothing special.
  switch (what) {
    case content::ties:
    case content::exact_scale:
    case content::boundary:
    case content::distinct:
    case content::floor:
      return {};
    case content::infinite:
      return {"NonFinite"};
    default:
      return flags;
  }
}

namespace {

std::uint32_t any_sign(draw& from, std::uint32_t magnitude) {
  return magnitude | from.below(2) << 31;
}

// amax / limit and amax * RN(1 / limit) lie on two sides of what ceil_log2 rounds away.
bool depends_on_quotient(float amax, float limit, float inverse) {
  return ceil_log2(true_div(amax, limit)) != ceil_log2(mul(amax, inverse));
}
// Neither does: the exponent is below the one that the bits have.
bool is_rounded_away(float amax, float limit, float inverse) {
  const float q = true_div(amax, limit);
  return !depends_on_quotient(amax, limit, inverse) && ceil_log2(q) != ceil_log2_exact(q);
}

using amax_test = bool (*)(float amax, float limit, float inverse);
void fill_beside_power(draw& from, amax_test wanted, const block_rules& rules, std::uint32_t* to,
                       std::int64_t elements) {
  const auto limit = static_cast<float>(rules.limit());
  const float inverse = true_div(1.0F, limit);
  std::uint32_t amax = bits_of(limit);
  bool found = false;
  while (!found) {
    const std::int64_t exponent = from.between(std::max<std::int64_t>(rules.lowest_scale, -90), 90);
    const std::uint32_t at = bits_of(std::ldexp(limit, static_cast<int>(exponent)));
    for (std::uint32_t beside = 1; beside < 64 && !found; ++beside) {
      found = wanted(float_of(at + beside), limit, inverse);
      amax = at + beside;
    }
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    to[i] = any_sign(from, amax - 1 - from.below(12U << 23));
  }
  to[from.below(static_cast<std::uint64_t>(elements))] = any_sign(from, amax);
}

void fill_divided(draw& from, const block_rules& rules, std::uint32_t* to, std::int64_t elements) {
  // A scale whose approximate inverse is not the rounded one.
  std::uint32_t amax = 0;
  float scale = 1;
  while (true_div(1.0F, scale) == div_full(1.0F, scale)) {
    amax = static_cast<std::uint32_t>(from.between(120, 150)) << 23 | from.below(1U << 23);
    scale = mul(float_of(amax), true_div(1.0F, static_cast<float>(rules.limit())));
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint64_t tie = rules.ties[from.below(rules.ties.size())];
    const double middle =
        std::ldexp(static_cast<double>(tie), static_cast<int>(rules.tie_exponent)) * double{scale};
    const std::uint32_t beside = bits_of(static_cast<float>(middle)) + from.below(3) - 1;
    to[i] = any_sign(from, std::min(beside, amax));
  }
  to[from.below(static_cast<std::uint64_t>(elements))] = any_sign(from, amax);
}

}  // namespace

void fill_f32_block(draw& from, content what, const block_rules& rules, std::int64_t number,
                    std::uint32_t* to, std::int64_t elements) {
  if (what == content::quotient || what == content::window) {
    const amax_test wanted = what == content::quotient ? depends_on_quotient : is_rounded_away;
    fill_beside_power(from, wanted, rules, to, elements);
    return;
  }
  if (what == content::divided) {
    fill_divided(from, rules, to, elements);
    return;
  }
  if (what == content::mixed) {
    what = all_contents[from.below(std::size(all_contents) - 1)];
  }
  std::vector<std::uint16_t> values(static_cast<std::size_t>(elements));
  // A boundary starts from the limit itself.
  fill_block(from, what == content::boundary ? content::exact_scale : what, rules, number,
             values.data(), elements);
  std::uint32_t amax = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    to[i] = static_cast<std::uint32_t>(values[static_cast<std::size_t>(i)]) << 16;
    if ((to[i] & magnitude_mask) < infinity) amax = std::max(amax, to[i] & magnitude_mask);
  }
  const std::int64_t beside = from.one_in(2) ? from.between(-2, 3) : from.between(4, 26);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint32_t magnitude = to[i] & magnitude_mask;
    const bool largest = magnitude == amax;
    if (magnitude == 0 || magnitude >= infinity) continue;
    switch (what) {
      case content::ordinary:
      case content::any_bits:
      case content::subnormal:
      case content::huge:
      case content::infinite:
      case content::nan:
        to[i] |= low_bits(from);
        break;
      case content::ties:
        // fill_block's own neighbours are bf16 ones; every other tie gets those of f32.
        if (!largest) to[i] += static_cast<std::uint32_t>(from.between(-1, 1));
        break;
      case content::boundary:
        if (largest) to[i] += static_cast<std::uint32_t>(beside);
        break;
      case content::floor:
        to[i] = (to[i] & ~magnitude_mask) |
                (largest ? rules.floor_f32 + static_cast<std::uint32_t>(from.between(-2, 3))
                         : std::min(magnitude, rules.floor_f32 - 2));
        break;
      default:
        break;
    }
  }
}

std::vector<std::uint32_t> draw_parameters(draw& from, content what, const block_rules& rules,
                                           std::int64_t elements, std::int64_t block) {
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(elements));
  // One block may be all there is: the place in the turn is drawn.
  std::int64_t number = from.below(1000);
  for (std::int64_t d = 0; d < elements; d += block) {
    fill_f32_block(from, what, rules, number++, &bits[static_cast<std::size_t>(d)],
                   std::min(block, elements - d));
  }
  return bits;
}

buffer parameter_buffer(std::string_view name, dtype type, const std::vector<std::uint32_t>& bits) {
  buffer made = make_buffer(name, type, dense({static_cast<std::int64_t>(bits.size())}));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::byte* to = made.view().element(static_cast<std::int64_t>(i));
    if (type == dtype::f32) {
      store(to, bits[i]);
    } else {
      store(to, static_cast<std::uint16_t>(bits[i] >> 16));
    }
  }
  return made;
}

buffer draw_rows(draw& from, std::string_view name, const row_shape& shape, norm_source source,
                 content what, const block_rules& rules, std::int64_t block, const row_norm& norm) {
  buffer made = make_buffer(name, dtype::bf16,
                            {{shape.rows, shape.elements},
                             {shape.elements + shape.gap, 1},
                             shape.gap == 0       ? 0
                             : shape.gap % 8 == 0 ? 8
                                                  : 3},
                            shape.guard);
  std::vector<std::uint16_t> values(static_cast<std::size_t>(shape.elements));
  std::int64_t number = 0;
  for (std::int64_t n = 0; n < shape.rows; ++n) {
    // One NaN spoils a normalized row: each row has one kind of content.
    const content kind =
        what == content::mixed ? all_contents[from.below(std::size(all_contents) - 1)] : what;
    if (is_hard(source) && norm.layer && n > 0) {
      // Weight and bias are those of row 0.
      fill_hard_candidate(from, source, values.data(), shape.elements);
    } else if (is_hard(source)) {
      fill_hard_row(from, source, norm, values.data(), shape.elements);
    } else {
      fill_row(from, kind, rules, number, values.data(), shape.elements, block);
    }
    std::memcpy(made.view().element(n, 0), values.data(), values.size() * 2);
  }
  return made;
}

buffer draw_sign_rows(draw& from, std::string_view name, const row_shape& shape) {
  buffer made =
      make_buffer(name, dtype::bf16,
                  {{shape.rows, shape.elements}, {shape.elements + shape.gap, 1}, 0}, shape.guard);
  for (std::int64_t n = 0; n < shape.rows; ++n) {
    const std::int64_t exponent = n == 0 ? 0 : from.between(-20, 20);
    for (std::int64_t d = 0; d < shape.elements; ++d) {
      store(made.view().element(n, d), bf16_normal(n != 0 && from.one_in(2), exponent, 0));
    }
  }
  return made;
}

layer_parameters residual_parameters(draw& from, const buffer& rows, double eps,
                                     std::int64_t weight_exponent) {
  layer_parameters made;
  const std::int64_t dims = rows.at.shape[1];
  double sum = 0;
  for (std::int64_t d = 0; d < dims; ++d) sum += value_at(rows, 0, d);
  const double mean = sum / static_cast<double>(dims);
  double squares = 0;
  for (std::int64_t d = 0; d < dims; ++d) {
    const double deviation = value_at(rows, 0, d) - mean;
    squares += deviation * deviation;
  }
  const double root = std::sqrt(squares / static_cast<double>(dims) + eps);
  for (std::int64_t d = 0; d < dims; ++d) {
    const std::uint32_t weight =
        (static_cast<std::uint32_t>(
             bf16_normal(from.one_in(2), weight_exponent + from.below(2), from.below(128)))
         << 16) |
        from.below(0x10000);
    made.weight.push_back(weight);
    made.bias.push_back(
        bits_of_double(-(value_at(rows, 0, d) - mean) / root * double{float_of(weight)}));
  }
  return made;
}

std::vector<std::uint32_t> border_weight(draw& from, const buffer& rows, double eps, norm_border at,
                                         const block_rules& rules, std::int64_t block) {
  const std::int64_t count = rows.at.shape[0];
  const std::int64_t dims = rows.at.shape[1];
  std::vector<double> roots;
  for (std::int64_t n = 0; n < count; ++n) {
    double squares = 0;
    for (std::int64_t d = 0; d < dims; ++d) squares += value_at(rows, n, d) * value_at(rows, n, d);
    roots.push_back(std::sqrt(squares / static_cast<double>(dims) + eps));
  }
  std::vector<std::uint32_t> weight;
  for (std::int64_t d = 0; d < dims; ++d) {
    const std::int64_t row = d % std::max<std::int64_t>(count, 1);
    border wanted = border::bf16;
    if (at == norm_border::code || (at == norm_border::bf16_and_code && from.one_in(2))) {
      wanted = border::code;
    }
    if (at == norm_border::code_by_bf16) wanted = border::code_by_bf16;
    double target = border_value(from, wanted, rules, 0);
    if (at != norm_border::bf16 && d % block == 0) target = rules.limit();
    const double x = count == 0 ? 1.0 : value_at(rows, row, d);
    const double root = count == 0 ? 1.0 : roots[static_cast<std::size_t>(row)];
    weight.push_back(x == 0 ? 0 : bits_of_double(target * root / x));
  }
  return weight;
}

}  // namespace kvcts
