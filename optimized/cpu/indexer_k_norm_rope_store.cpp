#include "optimized/kernels/indexer_k_norm_rope_store.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <profile P, bool Mxfp4>
static void store_rows(const indexer_k_norm_rope_store_arguments& a, std::int64_t first,
                       std::int64_t last) {
  const key_weights<group> weights = load_key_weights<group, false>(a);
  // Live rows by twos; the last one may be alone.
  group_row waiting = {};
  bool waits = false;
  for (std::int64_t row = first; row <= last; ++row) {
    group_row found = waiting;
    if (row < last && !load_group_row<group, false>(a.at, row, found)) continue;
    if (row < last && !waits) {
      waiting = found;
      waits = true;
    } else if (waits) {
      store_keys<group, P, Mxfp4, false>(a, weights, waiting, found, row < last ? 2 : 1);
      waits = false;
    }
  }
}

template <profile P>
static void store_rows_of(const indexer_k_norm_rope_store_arguments& a, std::int64_t first,
                          std::int64_t last) {
  (a.mxfp4 ? store_rows<P, true> : store_rows<P, false>)(a, first, last);
}

void indexer_k_norm_rope_store(const indexer_k_norm_rope_store_arguments& a, profile p,
                               std::int64_t first, std::int64_t last) {
  const auto run =
      p == profile::nvidia ? store_rows_of<profile::nvidia> : store_rows_of<profile::ieee>;
  run(a, first, last);
}

}  // namespace kvcts::KVCTS_TARGET
