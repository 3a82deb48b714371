#include "reference/kernels/fused_inv_rope_fp8_quant.h"

#include <vector>

#include "reference/formats/bf16.h"
#include "reference/kernels/cos_sin.h"
#include "reference/kernels/fp8_block.h"
#include "reference/numerics/rope.h"

namespace kvcts {
namespace {

const fp8_form group_form = {float_of(0x2EDBE6FF) /* 1e-10 */, quotient::mul, fp8_scaling::divide,
                             true};

// The scale buffer: [groups of heads, inner, padded tokens].
struct scale_buffer {
  const tensor_view& scales;
  std::int64_t inner;   // of a group of heads: its scales, or their fours where packed
  std::int64_t padded;  // tokens, rounded up to 4
  const Rules& rules;
  std::byte* at(std::int64_t group, std::int64_t k, std::int64_t token) const {
    return scales.element(group * inner * padded + rules.scale_place(k, token, inner, padded));
  }
};

// The exponent field of the f32 scale; an infinite one gives 0xFF.
std::uint8_t field_of(float scale) { return static_cast<std::uint8_t>(bits_of(scale) >> 23); }

}  // namespace

void fused_inv_rope_fp8_quant(const call& c, const Rules& rules) {
  const tensor_view& o = c.tensor("o");                  // [T, G * HG, D] bf16
  const tensor_view& positions = c.tensor("positions");  // [T] i64
  const tensor_view& table = c.tensor("cos_sin_cache");  // [max_pos, rope_dim] f32
  const tensor_view& output = c.tensor("output");        // [G, T, HG * D] E4M3 or bf16
  const std::int64_t heads = c.integer("heads_per_group");
  const std::int64_t rope_dim = c.integer("rope_dim");
  const std::int64_t group_size = c.integer("quant_group_size");
  const bool quantize = c.integer("quantize") != 0;
  const bool packed = c.integer("tma_aligned_scales") != 0;
  const std::int64_t tokens = o.dim(0);
  const std::int64_t dims = o.dim(2);
  const std::int64_t scales_of_head = dims / group_size;

  const std::int64_t padded = (tokens + 3) / 4 * 4;
  const std::int64_t inner = heads * scales_of_head / (packed ? 4 : 1);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t position = rules.rope_position(load<std::int64_t>(positions.element(t)), 1);
    const std::vector<float> cos_sin = cos_sin_row(table, position);
    for (std::int64_t h = 0; h < o.dim(1); ++h) {
      const std::int64_t group = h / heads;
      const std::int64_t first = h % heads * dims;  // of the group's row
      std::vector<float> x;
      for (std::int64_t d = 0; d < dims; ++d) {
        x.push_back(decode_bf16(load<std::uint16_t>(o.element(t, h, d))));
      }
      rotate(rules, rope_form::inverse, x.data(), dims, cos_sin.data(), rope_dim);
      if (!quantize) {
        for (std::int64_t d = 0; d < dims; ++d) {
          store(output.element(group, t, first + d),
                rules.round_bf16(x[static_cast<std::size_t>(d)]));
        }
        continue;
      }
      const scale_buffer to = {c.tensor("scales"), inner, padded, rules};
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(group_size));
      std::vector<std::uint8_t> fields;
      for (std::int64_t b = 0; b < scales_of_head; ++b) {
        for (std::int64_t d = 0; d < group_size; ++d) {
          float& value = x[static_cast<std::size_t>(b * group_size + d)];
          value = rules.kept_f32(value);
        }
        const float exponent = quantize_fp8_block(rules, group_form, x.data() + b * group_size,
                                                  group_size, fp8_format::e4m3fn, codes.data());
        for (std::int64_t d = 0; d < group_size; ++d) {
          store(output.element(group, t, first + b * group_size + d),
                codes[static_cast<std::size_t>(d)]);
        }
        const float scale = rules.exp2_int(exponent);
        const std::int64_t k = h % heads * scales_of_head + b;
        if (!packed) {
          store(to.at(group, k, t), scale);
          continue;
        }
        fields.push_back(field_of(scale));
        if (fields.size() == 4) {
          store(to.at(group, k / 4, t), rules.pack_scales(fields.data()));
          fields.clear();
        }
      }
    }
  }

  // Rows behind the tokens: 4 bytes of zero in both forms.
  for (std::int64_t g = 0; quantize && rules.zero_padding_rows && g < output.dim(0); ++g) {
    const scale_buffer to = {c.tensor("scales"), inner, padded, rules};
    for (std::int64_t k = 0; k < inner; ++k) {
      for (std::int64_t t = tokens; t < padded; ++t) store(to.at(g, k, t), std::uint32_t{0});
    }
  }
}

}  // namespace kvcts
