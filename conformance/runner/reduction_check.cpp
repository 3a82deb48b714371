#include "conformance/runner/reduction_check.h"

#include <fmt/format.h>

#include "reference/kernels/norm.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/reduction_tree.h"
#include "reference/numerics/rules.h"
#include "vectors/reduction_trees.h"

namespace kvcts {
namespace {

void compare(reduction_check::row& into, std::string_view what, std::int64_t row, float expected,
             float got) {
  ++into.compared;
  if (bits_of(expected) == bits_of(got)) return;
  if (into.different++ == 0) {
    into.first = fmt::format("row {}, {}: expected 0x{:08X}, got 0x{:08X}", row, what,
                             bits_of(expected), bits_of(got));
  }
}

reduction_check::row check_group(const reduction_tree_group& group, const Rules& rules) {
  reduction_check::row result;
  result.group = group.name;
  result.rows = group.rows();
  const tensor_view x = group.x.view();
  const tensor_view sum = group.sum.view();
  const tensor_view squares = group.sum_sq_dev.view();
  const tensor_view rstd = group.rstd.view();
  const auto eps = static_cast<float>(group.eps);
  layer_norm norm;
  norm.weight = read_vector(group.weight.view());
  norm.bias = read_vector(group.bias.view());
  norm.eps = eps;
  norm.tree = rules.tree(group.dim, 2, static_cast<int>(group.num_warps));
  const float one_over_dim = 1.0F / static_cast<float>(group.dim);  // exact: a power of two
  for (std::int64_t row = 0; row < group.rows(); ++row) {
    const std::vector<float> values = read_row(x, row);
    const float s = rules.sum(norm.tree, values.data(), group.dim);
    const float mean = mul(s, one_over_dim);
    std::vector<float> deviations;
    for (const float value : values) deviations.push_back(sub(value, mean));
    const float v = rules.sum_of_squares(norm.tree, deviations.data(), group.dim, 0);
    compare(result, "sum", row, load<float>(sum.element(row)), s);
    compare(result, "sum_sq_dev", row, load<float>(squares.element(row)), v);
    compare(result, "rstd", row, load<float>(rstd.element(row)),
            rules.rsqrt(rules.variance(v, group.dim, eps)));
    if (!group.y) continue;
    const tensor_view y = group.y->view();
    const std::vector<float> normalized = norm.of(values, rules);
    for (std::int64_t i = 0; i < group.dim; ++i) {
      compare(result, fmt::format("y[{}]", i), row, load<float>(y.element(row, i)),
              normalized[static_cast<std::size_t>(i)]);
    }
  }
  return result;
}

}  // namespace

reduction_check check_reduction_trees(const std::string& path) {
  const reduction_tree_file file(path);
  const Rules rules = rules_for(profile::nvidia);
  reduction_check check;
  for (const std::string& group : file.groups()) {
    check.rows.push_back(check_group(file.read(group), rules));
  }
  return check;
}

}  // namespace kvcts
