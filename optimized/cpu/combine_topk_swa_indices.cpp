#include "optimized/kernels/combine_topk_swa_indices.h"

#include "optimized/cpu/index_rows.h"
#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

void combine_topk_swa_indices(const combine_topk_swa_indices_arguments& a, profile /*p*/,
                              std::int64_t first, std::int64_t last) {
  const auto compressed = static_cast<std::uint32_t>(a.compressed);
  for (std::int64_t token = first; token < last; ++token) {
    const combined_row row = combined_row_of<group, false>(a, token);
    byte* to = a.combined + token * a.columns * 4;
    const std::int64_t topk = row.topk < a.columns ? row.topk : a.columns;
    const std::int64_t used = row.columns < a.columns ? row.columns : a.columns;
    map_indices(to, a.topk.start + token * a.topk.row_stride, topk,
                [&](const lane_u32& id) KVCTS_INLINE_LAMBDA {
                  // Negative entries are above every N.
                  return group::select(id < compressed, id + row.first, group::splat(no_index));
                });
    count_up(to + topk * 4, used - topk, row.first_window + static_cast<std::uint32_t>(topk));
    fill_none(to + used * 4, a.columns - used);
    store_scalar<group, false>(a.lens + token * 4, row.columns);
  }
}

}  // namespace kvcts::KVCTS_TARGET
