// The kernels' mathematics on one row, in double precision without any rounding between.
#pragma once

#include <vector>

namespace kvcts::exact {

using row = std::vector<double>;

// x / sqrt(mean of squares + eps) * weight.
row rms_norm(const row& x, const row& weight, double eps);
// (x - mean) / sqrt(mean of squared deviations + eps) * weight + bias.
row layer_norm(const row& x, const row& weight, const row& bias, double eps);
// Rotates the pairs of neighbours of the last dims. `cos_sin`: half as many cosines, then the
// sines.
void rotate(row& x, const row& cos_sin);
void rotate_back(row& x, const row& cos_sin);
// Two rows [kv | score]: the mean of their kv, weighed by the softmax of the two scores, per dim.
row pool(const row& first, const row& second);

}  // namespace kvcts::exact
