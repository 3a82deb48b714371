#include "conformance/accuracy/exact.h"

#include <Eigen/Core>
#include <cmath>

namespace kvcts::exact {
namespace {

using numbers = Eigen::Map<const Eigen::ArrayXd>;
using pairs_half = Eigen::Map<Eigen::ArrayXd, Eigen::Unaligned, Eigen::InnerStride<2>>;

Eigen::Index size_of(const row& x) { return static_cast<Eigen::Index>(x.size()); }
numbers all(const row& x) { return {x.data(), size_of(x)}; }
row made(const Eigen::ArrayXd& values) { return {values.data(), values.data() + values.size()}; }

// `direction` is 1 or -1.
void turn(row& x, const row& cos_sin, double direction) {
  const Eigen::Index pairs = size_of(cos_sin) / 2;
  double* first = x.data() + x.size() - 2 * pairs;
  pairs_half even(first, pairs);
  pairs_half odd(first + 1, pairs);
  const numbers cosines(cos_sin.data(), pairs);
  const numbers sines(cos_sin.data() + pairs, pairs);
  const Eigen::ArrayXd turned = even * cosines - direction * odd * sines;
  odd = odd * cosines + direction * even * sines;
  even = turned;
}

}  // namespace

row rms_norm(const row& x, const row& weight, double eps) {
  return made(all(x) / std::sqrt(all(x).square().mean() + eps) * all(weight));
}

row layer_norm(const row& x, const row& weight, const row& bias, double eps) {
  const Eigen::ArrayXd deviations = all(x) - all(x).mean();
  return made(deviations / std::sqrt(deviations.square().mean() + eps) * all(weight) + all(bias));
}

void rotate(row& x, const row& cos_sin) { turn(x, cos_sin, 1); }
void rotate_back(row& x, const row& cos_sin) { turn(x, cos_sin, -1); }

row pool(const row& first, const row& second) {
  const Eigen::Index dims = size_of(first) / 2;
  const numbers a(first.data(), dims);
  const numbers b(second.data(), dims);
  const numbers score_a(first.data() + dims, dims);
  const numbers score_b(second.data() + dims, dims);
  const Eigen::ArrayXd share = 1 / (1 + (score_b - score_a).exp());  // of the first row
  return made(share * a + (1 - share) * b);
}

}  // namespace kvcts::exact
