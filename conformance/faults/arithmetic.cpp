// Faults of arithmetic: division, roots, exponentials, contraction, order of sums, rounding points.
#include "reference/numerics/arithmetic.h"

#include <cmath>

#include "conformance/cases/norm_rows.h"
#include "conformance/faults/parts.h"
#include "reference/formats/bf16.h"
#include "reference/numerics/mufu.h"

namespace kvcts::fault_parts {
namespace {

float by_bf16(float x) { return decode_bf16(encode_bf16(x)); }
float as_it_is(float x) { return x; }

float by_reciprocal(float a, float b) { return mul(a, true_div(1.0F, b)); }
float root_then_inverse(float x) { return true_div(1.0F, std::sqrt(x)); }

float even_apart(float a, float b, float c, float s) { return sub(mul(a, c), mul(b, s)); }
float even_other(float a, float b, float c, float s) { return fma(-b, s, mul(a, c)); }
float odd_apart(float a, float b, float c, float s) { return add(mul(b, c), mul(a, s)); }
float odd_by_odd(float a, float b, float c, float s) { return fma(b, c, mul(a, s)); }
float odd_by_even(float a, float b, float c, float s) { return fma(a, s, mul(b, c)); }
float back_even(float a, float b, float c, float s) { return fma(a, c, mul(b, s)); }
float back_odd(float a, float b, float c, float s) { return fma(b, c, -mul(a, s)); }
float back_even_apart(float a, float b, float c, float s) { return add(mul(a, c), mul(b, s)); }
float back_even_other(float a, float b, float c, float s) { return fma(b, s, mul(a, c)); }
float back_odd_apart(float a, float b, float c, float s) { return sub(mul(b, c), mul(a, s)); }
float back_odd_other(float a, float b, float c, float s) { return fma(-a, s, mul(b, c)); }
float even_right(float a, float b, float c, float s) { return fma(a, c, -mul(b, s)); }

rope_pair halves(std::int64_t pair, std::int64_t rope_dims) { return {pair, pair + rope_dims / 2}; }

using tree_rule = reduction_tree (*)(std::int64_t, int, int);
reduction_tree neighbours_first(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.lane_pairing = pairing::doubling;
  return tree;
}
float sum_of_swapped(const reduction_tree& tree, const float* x, std::int64_t n) {
  return tree_sum(tree, row_of_swapped_lanes(tree, x, n).data(), tree.padded);
}
float squares_of_swapped(const reduction_tree& tree, const float* x, std::int64_t n,
                         std::int64_t element) {
  return tree_sum_of_squares(tree, row_of_swapped_lanes(tree, x, n).data(), tree.padded,
                             place_of_swapped_lanes(tree, element));
}
reduction_tree neighbour_warps_first(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.warp_pairing = pairing::doubling;
  return tree;
}
float lower_half_squares(const reduction_tree& tree, const float* x, std::int64_t n, std::int64_t) {
  return tree_sum_of_squares(tree, x, n, 0);
}
reduction_tree squares_rounded(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.squares = square_step::separate;
  return tree;
}
reduction_tree fewer_warps(std::int64_t padded, int bytes, int warps) {
  return tree_of(padded, bytes, warps == 1 ? 2 : warps / 2);
}
reduction_tree wide_lanes(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.per *= 2;
  return tree;
}
reduction_tree one_a_lane(std::int64_t padded, int bytes, int warps) {
  reduction_tree tree = tree_of(padded, bytes, warps);
  tree.per = tree.per == 1 ? 2 : 1;
  return tree;
}
float sum_in_order(const reduction_tree&, const float* x, std::int64_t n) {
  float sum = x[0];
  for (std::int64_t i = 1; i < n; ++i) sum = add(sum, x[i]);
  return sum;
}
float squares_in_order(const reduction_tree&, const float* x, std::int64_t n, std::int64_t) {
  float sum = mul(x[0], x[0]);
  for (std::int64_t i = 1; i < n; ++i) sum = fma(x[i], x[i], sum);
  return sum;
}

float variance_apart(float sum, std::int64_t n, float eps) {
  return add(true_div(sum, static_cast<float>(n)), eps);
}
float variance_by_inverse(float sum, std::int64_t n, float eps) {
  return add(mul(sum, true_div(1.0F, static_cast<float>(n))), eps);
}
float variance_of_sample(float sum, std::int64_t n, float eps) {
  return fma(sum, true_div(1.0F, static_cast<float>(n - 1)), eps);
}
float variance_without_eps(float sum, std::int64_t n, float) {
  return mul(sum, true_div(1.0F, static_cast<float>(n)));
}

float pool_apart(float p0, float a, float p1, float b) { return add(mul(p0, a), mul(p1, b)); }
float pool_other(float p0, float a, float p1, float b) { return fma(p1, b, mul(p0, a)); }
float pool_swapped(float p0, float a, float p1, float b) { return fma(p0, b, mul(p1, a)); }

// Divisions show where the quotient of an f32 amax or a divisor that is no power of two is at
// stake: by 2^e all ways are exact, and of a bf16 amax all give the same exponent. The approximate
// division multiplies by the instruction's inverse. That is the rounded one for all 8 mantissas of
// E4M3, so that a division by an E4M3 scale has one fault, not two.
constexpr names layer_norms = {key_mxfp4, prologue_mxfp4, key_fp8, prologue_fp8};
constexpr names rms_norms = {prologue_mxfp4, prologue_fp8, key_rope, norm_quant, compress};
constexpr names norms = {key_mxfp4, key_fp8,    prologue_mxfp4, prologue_fp8,
                         key_rope,  norm_quant, compress};
constexpr names across_warps = {key_mxfp4,    key_fp8,    prologue_mxfp4,
                                prologue_fp8, norm_quant, compress};
constexpr names forward = {query, key_rope, rope_insert};
constexpr names rotations = {query, key_rope, rope_insert, inverse};
constexpr names grouped = {key_rope, rope_insert};

}  // namespace

void add_arithmetic(std::vector<fault>& to) {
  const std::vector<fault> part = {
      {"division_exact",
       "exact division where the profile has the approximate one",
       {key_mxfp4, prologue_mxfp4, prologue_fp8, compress, rope_insert},
       [](Rules& r) { r.div = true_div; },
       profile::nvidia},
      {"division_approximate",
       "the approximate division where the profile has the exact one",
       {key_mxfp4, prologue_mxfp4, prologue_fp8, compress, rope_insert},
       [](Rules& r) { r.div = div_full; },
       profile::ieee},
      {"division_by_reciprocal",
       "a plain division is a product with the rounded inverse",
       {prologue_mxfp4, prologue_fp8, compress},
       [](Rules& r) { r.div = by_reciprocal; }},
      {"exact_division_by_reciprocal",
       "a division by an E4M3 scale is a product with the rounded inverse",
       {rope_insert},
       [](Rules& r) { r.true_div = by_reciprocal; }},
      {"rsqrt_exact", "an exact 1/sqrt where the profile has the approximate instruction", norms,
       [](Rules& r) { r.rsqrt = rules_for(profile::ieee).rsqrt; }, profile::nvidia},
      {"rsqrt_approximate", "the approximate 1/sqrt where the profile has the exact one", norms,
       [](Rules& r) { r.rsqrt = rsqrt_approx_ftz; }, profile::ieee},
      {"rsqrt_twice_rounded", "1/sqrt as a root, then a division", norms,
       [](Rules& r) { r.rsqrt = root_then_inverse; }},
      {"exp_exact",
       "an exact exponential where the profile has the approximate instruction",
       {compress},
       [](Rules& r) { r.exp = rules_for(profile::ieee).exp; },
       profile::nvidia},
      {"exp_approximate",
       "the approximate exponential where the profile has the exact one",
       {compress},
       [](Rules& r) { r.exp = exp_approx; },
       profile::ieee},
      {"exp_flushed",
       "the exponential's subnormal results are zero",
       {compress},
       [](Rules& r) {
         r.exp = [](float x) { return ex2_approx_ftz(mul(x, float_of(0x3FB8AA3B))); };
       },
       profile::nvidia},
      {"softmax_unshifted",
       "the largest score is not taken off before the exponential",
       {compress},
       [](Rules& r) { r.softmax_shift = [](float, float) { return 0.0F; }; }},
      {"infinite_score_wins",
       "the largest score is 0 below itself, an infinite one too",
       {compress},
       [](Rules& r) {
         r.shifted_score = [](float score, float shift) {
           return score == shift ? 0.0F : sub(score, shift);
         };
       }},
      {"pool_apart",
       "the pooled pair is rounded twice: no FMA",
       {compress},
       [](Rules& r) { r.pool_pair = pool_apart; }},
      {"pool_other_contraction",
       "the FMA takes the pair's other product",
       {compress},
       [](Rules& r) { r.pool_pair = pool_other; }},
      {"pool_swapped",
       "the pair's weights are swapped",
       {compress},
       [](Rules& r) { r.pool_pair = pool_swapped; }},
      {"lanes_neighbours_first", "a sum over lanes adds neighbours first", norms,
       [](Rules& r) { r.tree = neighbours_first; }},
      {"last_lanes_swapped", "a sum over lanes adds h = 1 before h = 2", norms,
       [](Rules& r) {
         r.sum = sum_of_swapped;
         r.sum_of_squares = squares_of_swapped;
       }},
      {"warps_neighbours_first", "a sum over warps adds neighbours first", across_warps,
       [](Rules& r) { r.tree = neighbour_warps_first; }},
      {"mirrored_half_missing",
       "the upper half of a row inside one warp takes the lower half's sum of squares", layer_norms,
       [](Rules& r) { r.sum_of_squares = lower_half_squares; }},
      {"squares_rounded", "squares are rounded before they are added: no FMA", layer_norms,
       [](Rules& r) { r.tree = squares_rounded; }},
      {"other_warps", "the sum of another number of warps", norms,
       [](Rules& r) { r.tree = fewer_warps; }},
      {"wide_lanes", "lanes that hold twice as many elements", norms,
       [](Rules& r) { r.tree = wide_lanes; }},
      {"one_element_a_lane", "lanes that hold one element where they hold several (or two for one)",
       norms, [](Rules& r) { r.tree = one_a_lane; }},
      {"sum_in_order", "a row is added from the first element to the last", layer_norms,
       [](Rules& r) { r.sum = sum_in_order; }},
      {"squares_in_order", "squares are added from the first element to the last", norms,
       [](Rules& r) { r.sum_of_squares = squares_in_order; }},
      {"variance_apart",
       "the mean of squares is rounded before eps is added: no FMA",
       {prologue_mxfp4, prologue_fp8, norm_quant},
       [](Rules& r) { r.variance = variance_by_inverse; },
       profile::nvidia},
      {"variance_divided",
       "the sum of squares is divided by n, then eps is added",
       {prologue_mxfp4, prologue_fp8, norm_quant},
       [](Rules& r) { r.variance = variance_apart; },
       profile::nvidia},
      {"variance_contracted",
       "mean of squares and eps in one FMA where the profile rounds twice",
       {prologue_mxfp4, prologue_fp8, norm_quant},
       [](Rules& r) { r.variance = rules_for(profile::nvidia).variance; },
       profile::ieee},
      {"variance_of_sample", "squares are divided by n - 1", norms,
       [](Rules& r) { r.variance = variance_of_sample; }},
      {"eps_missing", "eps is not added", norms,
       [](Rules& r) { r.variance = variance_without_eps; }},
      {"shift_apart", "LayerNorm's scale and bias are rounded apart: no FMA", layer_norms,
       [](Rules& r) {
         r.scale_and_shift = [](float x, float w, float b) { return add(mul(x, w), b); };
       }},
      {"weight_first", "RMSNorm's weight is multiplied into 1/rms first", rms_norms,
       [](Rules& r) {
         r.scale_row = [](float x, float inverse_rms, float w) {
           return mul(x, mul(inverse_rms, w));
         };
       }},
      {"weight_after_bf16", "the normalized row is rounded to bf16 before its weight", rms_norms,
       [](Rules& r) {
         r.scale_row = [](float x, float inverse_rms, float w) {
           return mul(by_bf16(mul(x, inverse_rms)), w);
         };
       }},
      {"weight_plus_one", "the norm's weight counts from 1, as Gemma's does", norms,
       [](Rules& r) { r.norm_parameter = [](float w) { return add(w, 1.0F); }; }},
      {"parameters_by_bf16", "f32 norm weights and biases are read as bf16", norms,
       [](Rules& r) { r.norm_parameter = by_bf16; }},
      {"round_trip_missing",
       "no bf16 rounding where the op has one",
       {query, key_rope, norm_quant, rope_insert},
       [](Rules& r) { r.through_bf16 = as_it_is; }},
      {"round_trip_added",
       "a bf16 rounding where the op stays in f32",
       {key_mxfp4, key_fp8, prologue_mxfp4, prologue_fp8, inverse, rope_insert},
       [](Rules& r) { r.kept_f32 = by_bf16; }},
      {"rope_even_apart", "RoPE's even dim is rounded twice: no FMA", forward,
       [](Rules& r) { r.rope_even = even_apart; }},
      {"rope_even_other_contraction", "RoPE's even dim: the FMA takes the other product", forward,
       [](Rules& r) { r.rope_even = even_other; }},
      {"rope_odd_apart", "RoPE's odd dim is rounded twice: no FMA", grouped,
       [](Rules& r) { r.rope_odd = odd_apart; }},
      {"rope_odd_other_contraction", "RoPE's odd dim: the FMA takes the other product", grouped,
       [](Rules& r) { r.rope_odd = odd_by_even; }},
      {"rope_query_odd_apart",
       "RoPE's odd dim of a query is rounded twice: no FMA",
       {query},
       [](Rules& r) { r.rope_odd_query = odd_apart; }},
      {"rope_query_odd_as_keys",
       "RoPE's odd dim of a query is contracted as keys are",
       {query},
       [](Rules& r) { r.rope_odd_query = odd_by_odd; }},
      {"rope_even_sign", "RoPE's even dim turns the wrong way", forward,
       [](Rules& r) { r.rope_even = back_even; }},
      {"rope_odd_sign", "RoPE's odd dim turns the wrong way", grouped,
       [](Rules& r) { r.rope_odd = back_odd; }},
      {"rope_query_odd_sign",
       "RoPE's odd dim of a query turns the wrong way",
       {query},
       [](Rules& r) { r.rope_odd_query = back_odd; }},
      {"inverse_even_apart",
       "the inverse RoPE's even dim is rounded twice: no FMA",
       {inverse},
       [](Rules& r) { r.inverse_rope_even = back_even_apart; }},
      {"inverse_even_other_contraction",
       "the inverse RoPE's even dim: FMA of the other product",
       {inverse},
       [](Rules& r) { r.inverse_rope_even = back_even_other; }},
      {"inverse_odd_apart",
       "the inverse RoPE's odd dim is rounded twice: no FMA",
       {inverse},
       [](Rules& r) { r.inverse_rope_odd = back_odd_apart; }},
      {"inverse_odd_other_contraction",
       "the inverse RoPE's odd dim: FMA of the other product",
       {inverse},
       [](Rules& r) { r.inverse_rope_odd = back_odd_other; }},
      {"inverse_even_forward",
       "the inverse RoPE's even dim turns forward",
       {inverse},
       [](Rules& r) { r.inverse_rope_even = even_right; }},
      {"inverse_odd_forward",
       "the inverse RoPE's odd dim turns forward",
       {inverse},
       [](Rules& r) { r.inverse_rope_odd = odd_by_odd; }},
      {"rope_first_dims", "RoPE turns the first dims of a head, not the last", rotations,
       [](Rules& r) {
         r.first_rope_dim = [](std::int64_t, std::int64_t) { return std::int64_t{0}; };
       }},
      {"rope_halves", "RoPE pairs dim i with dim i + half (NeoX), not neighbours", rotations,
       [](Rules& r) { r.rope_pair_of = halves; }},
      {"rope_next_position", "RoPE of the next position", rotations,
       [](Rules& r) {
         r.rope_position = [](std::int64_t p, std::int64_t ratio) { return p / ratio * ratio + 1; };
       }},
      {"rope_own_position", "a group turns by its last token's position, not by its first's",
       grouped, [](Rules& r) { r.rope_position = [](std::int64_t p, std::int64_t) { return p; }; }},
      {"weights_not_folded",
       "scales are not multiplied into the weights",
       {q_quant, query},
       [](Rules& r) { r.fold_weight = [](float weight, float) { return weight; }; }},
      {"weights_folded_twice",
       "scales are multiplied into the weights twice",
       {q_quant, query},
       [](Rules& r) {
         r.fold_weight = [](float weight, float by) { return mul(mul(weight, by), by); };
       }},
      {"weights_by_bf16",
       "weights are rounded to bf16 at each factor",
       {q_quant, query},
       [](Rules& r) {
         r.fold_weight = [](float weight, float by) { return by_bf16(mul(weight, by)); };
       }},
  };
  to.insert(to.end(), part.begin(), part.end());
}

}  // namespace kvcts::fault_parts
