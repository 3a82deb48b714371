#include "reference/kernels/fused_indexer_q_rope_quant.h"

#include <vector>

#include "reference/formats/bf16.h"
#include "reference/kernels/cos_sin.h"
#include "reference/kernels/fp8_block.h"
#include "reference/kernels/mxfp4_block.h"
#include "reference/kernels/norm.h"
#include "reference/numerics/rope.h"

namespace kvcts {
namespace {

constexpr std::int64_t dims_per_scale = 32;
const fp8_form head_form = {float_of(0x38D1B717) /* 1e-4 */, quotient::true_div,
                            fp8_scaling::true_divide, false};

std::vector<float> head_of(const tensor_view& q, std::int64_t token, std::int64_t head) {
  std::vector<float> x;
  for (std::int64_t d = 0; d < q.dim(2); ++d) {
    x.push_back(decode_bf16(load<std::uint16_t>(q.element(token, head, d))));
  }
  return x;
}

// The rotated pairs go through bf16; the dims before them are bf16 already.
void rotate_head(const Rules& rules, std::vector<float>& x, const std::vector<float>& cos_sin) {
  const auto dims = static_cast<std::int64_t>(x.size());
  const auto rope_dims = static_cast<std::int64_t>(cos_sin.size());
  rotate(rules, rope_form::query, x.data(), dims, cos_sin.data(), rope_dims);
  const std::int64_t first = rules.first_rope_dim(dims, rope_dims);
  for (std::int64_t d = first; d < first + rope_dims; ++d) {
    float& value = x[static_cast<std::size_t>(d)];
    value = rules.through_bf16(value);
  }
}

// Writes the codes, gives the head's scale.
float store_fp8(const call& c, const Rules& rules, fp8_format format, const std::vector<float>& x,
                std::int64_t token, std::int64_t head) {
  std::vector<std::uint8_t> codes(x.size());
  const float exponent = quantize_fp8_block(
      rules, head_form, x.data(), static_cast<std::int64_t>(x.size()), format, codes.data());
  const tensor_view& q_quant = c.tensor("q_quant");
  for (std::size_t d = 0; d < x.size(); ++d) {
    store(q_quant.element(token, head, static_cast<std::int64_t>(d)), codes[d]);
  }
  return rules.exp2_int(exponent);
}

void store_mxfp4(const call& c, const Rules& rules, const std::vector<float>& x, std::int64_t token,
                 std::int64_t head) {
  const tensor_view& q_packed = c.tensor("q_packed");
  const tensor_view& q_scale = c.tensor("q_scale");
  for (std::int64_t b = 0; b < q_scale.dim(2); ++b) {
    const mxfp4_block block =
        quantize_mxfp4_block(x.data() + b * dims_per_scale, rules, indexer_query_mxfp4);
    for (std::int64_t i = 0; i < 16; ++i) {
      store(q_packed.element(token, head, b * 16 + i), block.packed[static_cast<std::size_t>(i)]);
    }
    store(q_scale.element(token, head, b), block.scale);
  }
}

}  // namespace

void fused_indexer_q_rope_quant(const call& c, const Rules& rules) {
  const tensor_view& positions = c.tensor("positions");          // [T] i64
  const tensor_view& q = c.tensor("index_q");                    // [T, H, D] bf16
  const tensor_view& table = c.tensor("index_q_cos_sin_cache");  // [max_pos, R] f32 or bf16
  const tensor_view& weights = c.tensor("index_weights");        // [T, H] bf16 or f32
  const tensor_view& weights_out = c.tensor("weights_out");      // [T, H] f32 or bf16
  const float softmax_scale = c.real("index_weights_softmax_scale");
  const float head_scale = c.real("index_weights_head_scale");
  const bool use_fp4 = c.integer("use_fp4") != 0;
  const bool fnuz = c.text("fp8_format") == "e4m3fnuz";
  const fp8_format format = rules.cache_format(fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);

  for (std::int64_t t = 0; t < q.dim(0); ++t) {
    const std::int64_t position = rules.rope_position(load<std::int64_t>(positions.element(t)), 1);
    const std::vector<float> cos_sin = cos_sin_row(table, position);
    for (std::int64_t h = 0; h < q.dim(1); ++h) {
      std::vector<float> x = head_of(q, t, h);
      rotate_head(rules, x, cos_sin);
      float weight = read_element(weights, weights.element(t, h));
      if (use_fp4) {
        store_mxfp4(c, rules, x, t, h);
      } else {
        // The head's scale is stored nowhere else.
        weight = rules.fold_weight(weight, store_fp8(c, rules, format, x, t, h));
      }
      weight = rules.fold_weight(weight, softmax_scale);
      weight = rules.fold_weight(weight, head_scale);
      if (weights_out.type == dtype::bf16) {
        store(weights_out.element(t, h), rules.round_bf16(weight));
      } else {
        store(weights_out.element(t, h), weight);
      }
    }
  }
}

}  // namespace kvcts
