// What the cases of the index key inserts share, alone or inside a prologue.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/cases/norm_rows.h"

namespace kvcts {

enum class key_form : std::uint8_t { mxfp4, fp8 };

constexpr double norm_epsilons[] = {1e-6, 1e-5, 0.0, 1e-12, 0.25};
constexpr std::int64_t key_widths[] = {32, 64, 128, 256, 512, 1024};

inline std::int64_t key_record_bytes(key_form form, std::int64_t dims) {
  return form == key_form::mxfp4 ? dims / 2 + dims / 32 : dims + 4;
}
// Dims that share a scale.
inline std::int64_t key_block(key_form form, std::int64_t dims) {
  return form == key_form::mxfp4 ? 32 : dims;
}
block_rules key_rules(key_form form, bool fnuz);

// Index keys, and the parameters of their LayerNorm that go with them.
struct key_rows {
  buffer rows, weight, bias;
};
struct key_rows_options {
  std::string_view rows_name, weight_name, bias_name;
  row_shape shape;
  key_form form = key_form::mxfp4;
  bool fnuz = false;
  norm_source source = norm_source::rows;
  content what = content::mixed;
  bool bf16_parameters = false;
  double eps = 1e-6;
  int warps = 1;
  bool every_step = false;
};
key_rows draw_keys(draw& from, const key_rows_options& o);

// top-k rows of drawn indices, `gap` elements between them.
buffer draw_topk(draw& from, std::int64_t rows, std::int64_t columns, std::int64_t gap,
                 std::int64_t guard);

}  // namespace kvcts
