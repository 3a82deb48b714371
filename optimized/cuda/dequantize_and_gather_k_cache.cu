#include "optimized/cuda/rows.h"
#include "optimized/kernels/dequantize_and_gather_k_cache.h"

namespace kvcts {
namespace {

constexpr int rows_in_flight = 2;
constexpr std::int64_t wanted_warps = 1 << 14;  // some waves of a large device

template <int Bytes, bool Fnuz, bool Aligned, bool Ieee>
struct gather_body {
  static __device__ __forceinline__ void run(const dequantize_and_gather_k_cache_arguments& a,
                                             std::int64_t row) {
    device::gather_key_share<device::group, Bytes, Fnuz, Aligned, rows_in_flight>(a, Ieee, row);
  }
};

bool is_aligned(const dequantize_and_gather_k_cache_arguments& a) {
  return is_multiple(a.out, 16) && is_multiple(a.out_request_stride, 16) &&
         is_multiple(a.out_row_stride, 16) && is_multiple(a.cache.start, 8) &&
         is_multiple(a.cache.page_stride, 8) && is_multiple(a.seq_lens, 4) &&
         is_multiple(a.gather_lens, 4) && is_multiple(a.table.start, 4) &&
         is_multiple(a.table.row_stride, 4);
}

template <int Bytes, bool Fnuz, bool Aligned>
void launch_of(const dequantize_and_gather_k_cache_arguments& a, profile p, cudaStream_t stream) {
  const std::int64_t rows = dequantize_and_gather_k_cache_rows(a);
  constexpr auto name = "dequantize_and_gather_k_cache";
  if (p == profile::ieee && Bytes != 288) {  // NVFP4 is the same in both
    launch_rows<gather_body<Bytes, Fnuz, Aligned, Bytes != 288>>(a, rows, stream, name);
  } else {
    launch_rows<gather_body<Bytes, Fnuz, Aligned, false>>(a, rows, stream, name);
  }
}

template <int Bytes, bool Fnuz>
void launch_of(const dequantize_and_gather_k_cache_arguments& a, profile p, cudaStream_t stream) {
  (is_aligned(a) ? launch_of<Bytes, Fnuz, true> : launch_of<Bytes, Fnuz, false>)(a, p, stream);
}

// Enough shares for the device, but not fewer tokens than are in flight in each.
int share_shift_of(const dequantize_and_gather_k_cache_arguments& a) {
  int shift = 0;
  while (a.requests << shift < wanted_warps && a.capacity >> shift > rows_in_flight) ++shift;
  return shift;
}

}  // namespace

void launch_dequantize_and_gather_k_cache(const dequantize_and_gather_k_cache_arguments& given,
                                          profile p, cudaStream_t stream) {
  dequantize_and_gather_k_cache_arguments a = given;
  if (a.requests == 0) return;
  a.share_shift = share_shift_of(a);
  if (a.record_bytes == 584) {
    (a.fnuz ? launch_of<584, true> : launch_of<584, false>)(a, p, stream);
  } else if (a.record_bytes == 528) {
    (a.fnuz ? launch_of<528, true> : launch_of<528, false>)(a, p, stream);
  } else {
    launch_of<288, false>(a, p, stream);
  }
}

}  // namespace kvcts
