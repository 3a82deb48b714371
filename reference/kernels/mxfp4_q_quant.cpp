#include "reference/kernels/mxfp4_q_quant.h"

#include "reference/formats/bf16.h"
#include "reference/kernels/mxfp4_block.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::int64_t head_dim = 128;
constexpr std::int64_t blocks_per_head = 4;

float weight_at(const tensor_view& weights, std::int64_t token, std::int64_t head) {
  const std::byte* element = weights.element(token, head);
  return weights.type == dtype::bf16 ? decode_bf16(load<std::uint16_t>(element))
                                     : load<float>(element);
}

}  // namespace

void mxfp4_q_quant(const call& c, const Rules& rules) {
  const tensor_view& q = c.tensor("index_q");          // [T, H, 128] bf16
  const tensor_view& w = c.tensor("index_weights");    // [T, H] bf16 or f32
  const tensor_view& q_packed = c.tensor("q_packed");  // [T, P, 64] u8
  const tensor_view& q_scale = c.tensor("q_scale");    // [T, P] i32
  const tensor_view& weights = c.tensor("weights");    // [T, P] f32
  const float weight_scale = c.real("weight_scale");
  const std::int64_t heads = q.dim(1);
  const std::int64_t padded_heads = q_packed.dim(1);

  for (std::int64_t t = 0; t < q.dim(0); ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::uint8_t scales[blocks_per_head];
      for (std::int64_t b = 0; b < blocks_per_head; ++b) {
        float x[32];
        for (std::int64_t i = 0; i < 32; ++i) {
          x[i] = decode_bf16(load<std::uint16_t>(q.element(t, h, b * 32 + i)));
        }
        const mxfp4_block block = quantize_mxfp4_block(x, rules);
        for (std::int64_t i = 0; i < 16; ++i) {
          store(q_packed.element(t, h, b * 16 + i), block.packed[static_cast<std::size_t>(i)]);
        }
        scales[b] = block.scale;
      }
      store(q_scale.element(t, h), rules.pack_scales(scales));
      store(weights.element(t, h), rules.fold_weight(weight_at(w, t, h), weight_scale));
    }
    if (!rules.zero_padded_heads) continue;
    for (std::int64_t h = heads; h < padded_heads; ++h) {
      for (std::int64_t i = 0; i < head_dim / 2; ++i)
        store(q_packed.element(t, h, i), std::byte{0});
      store(q_scale.element(t, h), std::uint32_t{0});
      store(weights.element(t, h), 0.0F);
    }
  }
}

}  // namespace kvcts
