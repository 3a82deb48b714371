#include "reference/kernels/compute_global_topk_indices_and_lens.h"

#include "reference/kernels/index_rows.h"

namespace kvcts {

void compute_global_topk_indices_and_lens(const call& c, const Rules& rules) {
  const tensor_view& topk = c.tensor("topk_indices");              // [T, K] i32
  const tensor_view& requests = c.tensor("token_to_req_indices");  // [T] i32
  const tensor_view& table = c.tensor("block_table");              // [R, max blocks] i32
  const tensor_view& valid = c.tensor("is_valid_token");           // [T] bool
  const tensor_view& global = c.tensor("global_topk_indices");     // [T, K] i32
  const tensor_view& lens = c.tensor("topk_lens");                 // [T] i32
  const std::int64_t block_size = c.integer("block_size");

  for (std::int64_t t = 0; t < topk.dim(0); ++t) {
    const std::int64_t request = index_at(requests, t);
    const bool is_valid = load<std::uint8_t>(valid.element(t)) != 0;
    // Tokens that only pad the batch are translated too; their length is 0.
    const bool translated = is_valid || rules.translate_padding;
    std::int64_t found = 0;
    std::int64_t to = 0;
    for (std::int64_t column = 0; column < topk.dim(1); ++column) {
      const std::int64_t local = index_at(topk, t, column);
      const bool live = rules.index_is_live(local);
      if (live) ++found;
      if (!translated || (!live && rules.compact_topk)) continue;
      set_index(global, t, to++, slot_of_local(rules, table, request, local, block_size));
    }
    set_index(lens, t, is_valid || rules.count_padding ? found : 0);
  }
}

}  // namespace kvcts
