#include "reference/kernels/norm.h"

#include "reference/formats/bf16.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

// 1/sqrt(sum of squares / n + eps), as the two halves of the lanes hold it.
struct held {
  float lower, upper;
};
held reciprocal_root(const std::vector<float>& x, float eps, const reduction_tree& tree,
                     const Rules& rules) {
  const auto n = static_cast<std::int64_t>(x.size());
  const auto held_by = [&](std::int64_t element) {
    return rules.rsqrt(rules.variance(rules.sum_of_squares(tree, x.data(), n, element), n, eps));
  };
  const float lower = held_by(0);
  return {lower, tree.mirrored() ? held_by(tree.padded - 1) : lower};
}

}  // namespace

float read_element(const tensor_view& v, const std::byte* element) {
  return v.type == dtype::bf16 ? decode_bf16(load<std::uint16_t>(element)) : load<float>(element);
}

std::vector<float> read_row(const tensor_view& v, std::int64_t row) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < v.dim(1); ++i) x.push_back(read_element(v, v.element(row, i)));
  return x;
}

std::vector<float> read_vector(const tensor_view& v) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < v.dim(0); ++i) x.push_back(read_element(v, v.element(i)));
  return x;
}

reduction_tree contract_tree(const kernel_contract& contract, std::string_view reduction,
                             const bindings& names, const Rules& rules) {
  const row_reduction row = row_of(contract.reduction(reduction), names);
  return rules.tree(row.padded, row.element_bytes, row.warps);
}

std::vector<float> layer_norm::of(const std::vector<float>& x, const Rules& rules) const {
  const auto dims = static_cast<std::int64_t>(x.size());
  const float inverse_dims = true_div(1.0F, static_cast<float>(dims));  // exact: a power of two
  const float mean = mul(rules.sum(tree, x.data(), dims), inverse_dims);
  std::vector<float> d;
  for (const float value : x) d.push_back(sub(value, mean));
  const held r = reciprocal_root(d, eps, tree, rules);
  std::vector<float> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float normalized =
        mul(d[i], tree.in_upper_half(static_cast<std::int64_t>(i)) ? r.upper : r.lower);
    y.push_back(rules.scale_and_shift(normalized, rules.norm_parameter(weight[i]),
                                      rules.norm_parameter(bias[i])));
  }
  return y;
}

std::vector<float> rms_norm::of(const std::vector<float>& x, const Rules& rules) const {
  const held r = reciprocal_root(x, eps, tree, rules);
  std::vector<float> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back(
        rules.scale_row(x[i], tree.in_upper_half(static_cast<std::int64_t>(i)) ? r.upper : r.lower,
                        rules.norm_parameter(weight[i])));
  }
  return y;
}

}  // namespace kvcts
