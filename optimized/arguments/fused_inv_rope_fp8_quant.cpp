#include "optimized/arguments/fused_inv_rope_fp8_quant.h"

#include "optimized/arguments/common.h"

namespace kvcts {

fused_inv_rope_fp8_quant_arguments fused_inv_rope_fp8_quant_of(const call& c) {
  const tensor_view& o = c.tensor("o");
  fused_inv_rope_fp8_quant_arguments a{};
  a.o = first_element(o);
  a.o_token_stride = byte_stride(o, 0);
  a.o_head_stride = byte_stride(o, 1);
  a.positions = first_element(c.tensor("positions"));
  a.table = cos_sin_of(c.tensor("cos_sin_cache"));
  a.output = first_element(c.tensor("output"));
  a.tokens = o.dim(0);
  a.padded_tokens = (a.tokens + 3) / 4 * 4;
  a.heads = o.dim(1);
  a.heads_per_group = c.integer("heads_per_group");
  a.dims = o.dim(2);
  a.rope_dims = c.integer("rope_dim");
  a.dims_per_scale = c.integer("quant_group_size");
  a.quantize = c.integer("quantize") != 0;
  a.packed = c.integer("tma_aligned_scales") != 0;
  if (a.quantize) a.scales = first_element(c.tensor("scales"));
  return a;
}

}  // namespace kvcts
