#include "optimized/arguments/fused_save_compress_norm.h"

#include "optimized/arguments/common.h"

namespace kvcts {

fused_save_compress_norm_arguments fused_save_compress_norm_of(const call& c) {
  const tensor_view& kv_score = c.tensor("kv_score");
  const tensor_view& slots = c.tensor("slot_mapping");
  const tensor_view& weight = c.tensor("rms_norm_weight");
  const tensor_view& latent = c.tensor("latent_out");
  fused_save_compress_norm_arguments a{};
  a.kv_score = first_element(kv_score);
  a.kv_score_stride = byte_stride(kv_score, 0);
  a.positions = first_element(c.tensor("positions"));
  a.slot_mapping = first_element(slots);
  a.tokens = slots.dim(0);
  a.weight = first_element(weight);
  a.weight_is_f32 = weight.type == dtype::f32;
  a.eps = c.real("rms_norm_eps");
  a.latent = first_element(latent);
  a.latent_stride = byte_stride(latent, 0);
  a.ratio = static_cast<int>(c.integer("compress_ratio"));
  if (a.ratio == 2) {
    const tensor_view& starts = c.tensor("query_start_loc");
    const tensor_view& state = c.tensor("state_cache");
    a.query_starts = first_element(starts);
    a.request_of_token = first_element(c.tensor("token_to_req_indices"));
    a.requests = starts.dim(0) - 1;
    a.state = first_element(state);
    a.state_page_stride = byte_stride(state, 0);
    a.state_row_stride = byte_stride(state, 1);
    a.capacity = state.dim(1);
  }
  return a;
}

}  // namespace kvcts
