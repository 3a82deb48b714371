#include "optimized/arguments/compute_global_topk_indices_and_lens.h"

#include "optimized/arguments/common.h"

namespace kvcts {

compute_global_topk_indices_and_lens_arguments compute_global_topk_indices_and_lens_of(
    const call& c) {
  const tensor_view& topk = c.tensor("topk_indices");
  compute_global_topk_indices_and_lens_arguments a{};
  a.topk = matrix_of(topk);
  a.requests = first_element(c.tensor("token_to_req_indices"));
  a.table = matrix_of(c.tensor("block_table"));
  a.is_valid = first_element(c.tensor("is_valid_token"));
  a.global = first_element(c.tensor("global_topk_indices"));
  a.lens = first_element(c.tensor("topk_lens"));
  a.tokens = topk.dim(0);
  a.columns = topk.dim(1);
  a.block = divider_of(c.integer("block_size"));
  return a;
}

}  // namespace kvcts
