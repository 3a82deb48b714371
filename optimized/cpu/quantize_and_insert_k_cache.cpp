#include "optimized/kernels/quantize_and_insert_k_cache.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <profile P, int Bytes, bool Fnuz>
static void insert_rows(const quantize_and_insert_k_cache_arguments& a, std::int64_t first,
                        std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    insert_key_rows<group, P, Bytes, Fnuz, false, 1>(a, row);
  }
}

template <profile P>
static void insert_rows_of(const quantize_and_insert_k_cache_arguments& a, std::int64_t first,
                           std::int64_t last) {
  if (a.bytes_per_token == 584) {
    (a.fnuz ? insert_rows<P, 584, true> : insert_rows<P, 584, false>)(a, first, last);
  } else {
    (a.fnuz ? insert_rows<P, 528, true> : insert_rows<P, 528, false>)(a, first, last);
  }
}

void quantize_and_insert_k_cache(const quantize_and_insert_k_cache_arguments& a, profile p,
                                 std::int64_t first, std::int64_t last) {
  const auto run =
      p == profile::nvidia ? insert_rows_of<profile::nvidia> : insert_rows_of<profile::ieee>;
  run(a, first, last);
}

}  // namespace kvcts::KVCTS_TARGET
