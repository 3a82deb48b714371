#include "optimized/kernels/dequantize_and_gather_k_cache.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <int Bytes, bool Fnuz>
static void gather_shares(const dequantize_and_gather_k_cache_arguments& a, bool ieee,
                          std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    gather_key_share<group, Bytes, Fnuz, false, 1>(a, ieee, row);
  }
}

void dequantize_and_gather_k_cache(const dequantize_and_gather_k_cache_arguments& a, profile p,
                                   std::int64_t first, std::int64_t last) {
  const bool ieee = p == profile::ieee;
  if (a.record_bytes == 584) {
    (a.fnuz ? gather_shares<584, true> : gather_shares<584, false>)(a, ieee, first, last);
  } else if (a.record_bytes == 528) {
    (a.fnuz ? gather_shares<528, true> : gather_shares<528, false>)(a, ieee, first, last);
  } else {
    gather_shares<288, false>(a, ieee, first, last);
  }
}

}  // namespace kvcts::KVCTS_TARGET
