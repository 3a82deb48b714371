#include "optimized/kernels/dequantize_and_gather_k_cache.h"

#include "optimized/cpu/gathered_rows.h"
#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

// Whether the record is of the usual kind, and then its row.
template <int Bytes, bool Fnuz>
static bool gather_usual_row(unsigned char* to, const record_place& from) {
  if constexpr (Bytes == 288) {
    dequantize_e2m1_blocks<32>(to, from.data, from.scales);
  } else {
    constexpr int blocks = Bytes == 584 ? 7 : 16;
    constexpr int dims = Bytes == 584 ? 64 : 32;  // of a block
    const bool made = dequantize_e4m3_blocks<blocks, dims, Fnuz>(to, from.data, from.scales);
    if (!made) return false;
    if constexpr (Bytes == 584) __builtin_memcpy(to + 896, from.data + 448, 128);
  }
  return true;
}

template <int Bytes, bool Fnuz>
static void gather_shares(const dequantize_and_gather_k_cache_arguments& a, bool ieee,
                          std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    for_rows_of_share<group, false, 1>(
        a, row, [&](std::int64_t request, std::int32_t i, std::int32_t end, std::int32_t position) {
          unsigned char* to = a.out + request * a.out_request_stride + i * a.out_row_stride;
          const unsigned char* pages = a.table.start + request * a.table.row_stride;
          const record_place from = gathered_place<group, Bytes, false>(a, pages, position);
          if (gather_usual_row<Bytes, Fnuz>(to, from)) return;
          gather_key_rows<group, Bytes, Fnuz, false, 1>(a, ieee, request, i, end, position);
        });
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
