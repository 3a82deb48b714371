#include "optimized/arguments/fused_indexer_q_rope_quant.h"

#include "optimized/arguments/common.h"

namespace kvcts {

fused_indexer_q_rope_quant_arguments fused_indexer_q_rope_quant_of(const call& c) {
  const tensor_view& q = c.tensor("index_q");
  const tensor_view& table = c.tensor("index_q_cos_sin_cache");
  const tensor_view& weights = c.tensor("index_weights");
  const tensor_view& weights_out = c.tensor("weights_out");
  fused_indexer_q_rope_quant_arguments a{};
  a.positions = first_element(c.tensor("positions"));
  a.q = first_element(q);
  a.q_token_stride = byte_stride(q, 0);
  a.q_head_stride = byte_stride(q, 1);
  a.table = cos_sin_of(table);
  a.weights = first_element(weights);
  a.weights_token_stride = byte_stride(weights, 0);
  if (c.integer("use_fp4") != 0) {
    a.form = query_codes::mxfp4;
    a.codes = first_element(c.tensor("q_packed"));
    a.scales = first_element(c.tensor("q_scale"));
  } else {
    a.form = c.text("fp8_format") == "e4m3fnuz" ? query_codes::e4m3fnuz : query_codes::e4m3fn;
    a.codes = first_element(c.tensor("q_quant"));
  }
  a.weights_out = first_element(weights_out);
  a.tokens = q.dim(0);
  a.heads = q.dim(1);
  a.dims = q.dim(2);
  a.rope_dims = table.dim(1);
  a.softmax_scale = c.real("index_weights_softmax_scale");
  a.head_scale = c.real("index_weights_head_scale");
  a.weights_are_f32 = weights.type == dtype::f32;
  a.weights_out_are_f32 = weights_out.type == dtype::f32;
  return a;
}

}  // namespace kvcts
