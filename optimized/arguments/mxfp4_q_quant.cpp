#include "optimized/arguments/mxfp4_q_quant.h"

#include "optimized/arguments/common.h"

namespace kvcts {

mxfp4_q_quant_arguments mxfp4_q_quant_of(const call& c) {
  const tensor_view& q = c.tensor("index_q");
  const tensor_view& w = c.tensor("index_weights");
  const tensor_view& packed = c.tensor("q_packed");
  mxfp4_q_quant_arguments a{};
  a.q = first_element(q);
  a.q_token_stride = byte_stride(q, 0);
  a.q_head_stride = byte_stride(q, 1);
  a.index_weights = first_element(w);
  a.weights_token_stride = byte_stride(w, 0);
  a.q_packed = first_element(packed);
  a.q_scale = first_element(c.tensor("q_scale"));
  a.weights = first_element(c.tensor("weights"));
  a.tokens = q.dim(0);
  a.heads = q.dim(1);
  a.padded_heads = packed.dim(1);
  a.weight_scale = c.real("weight_scale");
  a.weights_are_f32 = w.type == dtype::f32;
  return a;
}

}  // namespace kvcts
