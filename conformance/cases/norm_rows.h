// Rows and parameters of the kernels that normalize before they quantize.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/build.h"
#include "reference/numerics/reduction_tree.h"

namespace kvcts {

// Where a case's content lies.
enum class norm_source : std::uint8_t {
  rows,         // in the rows: the norm meets it
  parameters,   // in the bias (weight 0) or in the weight (rows of +-2^n): it is what is quantized
  hard_sum,     // rows whose sum is inexact, results close to zero or to a rounding border
  hard_squares  // rows whose sum is exact, but not that of the squares; results as above
};
std::string_view name_of(norm_source source);
inline bool is_hard(norm_source source) {
  return source == norm_source::hard_sum || source == norm_source::hard_squares;
}
std::vector<std::string_view> flags_of(norm_source source, content what);

// A block of f32 bits: the bf16 content with f32's own neighbours. Ties come with +-1 f32 ulp, an
// amax at a boundary lies within a few ulp of limit * 2^e, the rest has drawn low bits.
void fill_f32_block(draw& from, content what, const block_rules& rules, std::int64_t number,
                    std::uint32_t* to, std::int64_t elements);
std::vector<std::uint32_t> draw_parameters(draw& from, content what, const block_rules& rules,
                                           std::int64_t elements, std::int64_t block);
// A buffer of f32, or of bf16 (the upper halves).
buffer parameter_buffer(std::string_view name, dtype type, const std::vector<std::uint32_t>& bits);

// bf16 rows [rows, elements], `gap` elements between them. `mixed` draws the content of each row.
struct row_shape {
  std::int64_t rows, elements;
  std::int64_t gap = 0, guard = 0;
};
// How the rows are normalized: hard rows are those, of a few, whose norm shows the tree best.
struct row_norm {
  reduction_tree tree;
  double eps = 1e-6;
  bool layer = false;  // LayerNorm, else RMSNorm
  // Of many more rows: the order of each step of the tree shows in its own right.
  bool every_step = false;
};
// A tree whose last two steps over lanes, h = 2 and h = 1, change places is the same tree over a
// row in which lanes 1 and 2 of every four do. The place of an element in that row, and the row.
std::int64_t place_of_swapped_lanes(const reduction_tree& tree, std::int64_t element);
std::vector<float> row_of_swapped_lanes(const reduction_tree& tree, const float* x, std::int64_t n);

buffer draw_rows(draw& from, std::string_view name, const row_shape& shape, norm_source source,
                 content what, const block_rules& rules, std::int64_t block, const row_norm& norm);
// Rows of +-2^n, one n a row: their RMSNorm with eps 0 is +-1.
buffer draw_sign_rows(draw& from, std::string_view name, const row_shape& shape);

// Weight and bias that leave of a row's LayerNorm what rounding left: y = w*z + b with b = -(w*z).
struct layer_parameters {
  std::vector<std::uint32_t> weight, bias;
};
layer_parameters residual_parameters(draw& from, const buffer& rows, double eps,
                                     std::int64_t weight_exponent);
// A weight that puts the RMSNorm of row d % rows, dim d, beside a rounding border. Unless
// that is one of bf16 alone, the first dim of every `block` comes to the limit: scales of about 1.
enum class norm_border : std::uint8_t { bf16, code, code_by_bf16, bf16_and_code };
std::vector<std::uint32_t> border_weight(draw& from, const buffer& rows, double eps, norm_border at,
                                         const block_rules& rules, std::int64_t block);

}  // namespace kvcts
