#include "optimized/kernels/compute_global_topk_indices_and_lens.h"

#include "optimized/cpu/index_rows.h"
#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

void compute_global_topk_indices_and_lens(const compute_global_topk_indices_and_lens_arguments& a,
                                          profile /*p*/, std::int64_t first, std::int64_t last) {
  with_divider(a.block, [&](auto power_of_two) {
    for (std::int64_t token = first; token < last; ++token) {
      const std::int64_t request = group::load_i32<false>(a.requests + token * 4);
      const byte* pages = a.table.start + request * a.table.row_stride;
      const std::uint32_t found = entry_slots<false, decltype(power_of_two)::value>(
          a.global + token * a.columns * 4, a.topk.start + token * a.topk.row_stride, a.columns,
          pages, a.block, a.block.size);
      // Tokens that only pad the batch are translated too; their length is 0.
      store_scalar<group, false>(a.lens + token * 4, a.is_valid[token] != 0 ? found : 0);
    }
  });
}

}  // namespace kvcts::KVCTS_TARGET
