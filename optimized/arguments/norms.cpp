#include "optimized/arguments/norms.h"

#include <algorithm>

#include "optimized/arguments/common.h"

namespace kvcts {

norm_vector norm_vector_of(const tensor_view& v) {
  return {first_element(v), v.type == dtype::f32};
}

row_norm row_norm_of(std::int64_t dims, std::int64_t covered, int warps, float eps) {
  constexpr std::int64_t load_elements = 8;  // of 16 bytes
  row_norm norm{};
  norm.dims = dims;
  norm.tree.padded = 1;
  while (norm.tree.padded < covered) norm.tree.padded *= 2;
  norm.tree.per =
      static_cast<int>(std::clamp<std::int64_t>(norm.tree.padded / (32 * warps), 1, load_elements));
  norm.tree.warps =
      static_cast<int>(std::clamp<std::int64_t>(norm.tree.padded / (32 * norm.tree.per), 1, warps));
  norm.launch_warps = warps;
  norm.eps = eps;
  norm.width = static_cast<float>(dims);
  norm.inverse_width = 1.0F / norm.width;
  norm.inverse_is_exact = shift_of(dims) >= 0;
  const bool whole = norm.tree.per == 8 && dims % 256 == 0 && dims <= 2048;
  norm.whole_parts = whole ? static_cast<int>(dims / 256) : 0;
  return norm;
}

norm_rows norm_rows_of(const tensor_view& from, const tensor_view& to, const tensor_view& weight,
                       const row_norm& norm) {
  return {first_element(from), byte_stride(from, 0),   first_element(to),
          byte_stride(to, 0),  norm_vector_of(weight), norm};
}

}  // namespace kvcts
