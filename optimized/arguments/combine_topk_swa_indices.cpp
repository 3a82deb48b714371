#include "optimized/arguments/combine_topk_swa_indices.h"

#include "optimized/arguments/common.h"

namespace kvcts {

combine_topk_swa_indices_arguments combine_topk_swa_indices_of(const call& c) {
  const tensor_view& topk = c.tensor("topk_indices");
  const tensor_view& seq_lens = c.tensor("seq_lens");
  const tensor_view& combined = c.tensor("combined_indices");
  combine_topk_swa_indices_arguments a{};
  a.topk = matrix_of(topk);
  a.starts = first_element(c.tensor("query_start_loc"));
  a.seq_lens = first_element(seq_lens);
  a.gather_lens = first_element(c.tensor("gather_lens"));
  a.combined = first_element(combined);
  a.lens = first_element(c.tensor("combined_lens"));
  a.tokens = topk.dim(0);
  a.requests = seq_lens.dim(0);
  a.columns = combined.dim(1);
  a.topk_columns = topk.dim(1);
  a.window = c.integer("window_size");
  a.ratio = c.integer("compress_ratio");
  a.most_topk = c.integer("topk");
  a.gathered = c.integer("M");
  a.compressed = c.integer("N");
  return a;
}

}  // namespace kvcts
