#include "optimized/arguments/dequantize_and_gather_k_cache.h"

#include <algorithm>

#include "optimized/arguments/common.h"

namespace kvcts {

dequantize_and_gather_k_cache_arguments dequantize_and_gather_k_cache_of(const call& c) {
  const tensor_view& out = c.tensor("out");
  const tensor_view& cache = c.tensor("k_cache");
  const tensor_view& seq_lens = c.tensor("seq_lens");
  const std::int64_t offset = c.integer("offset");
  dequantize_and_gather_k_cache_arguments a{};
  a.out_request_stride = byte_stride(out, 0);
  a.out_row_stride = byte_stride(out, 1);
  a.capacity = std::max(out.dim(1) - offset, std::int64_t{0});
  a.out = first_element(out) + (a.capacity > 0 ? offset * a.out_row_stride : 0);
  a.cache = pages_of(cache, c.integer("block_size"));
  a.seq_lens = first_element(seq_lens);
  a.gather_lens = first_element(c.find("gather_lens"));
  a.table = matrix_of(c.tensor("block_table"));
  a.requests = seq_lens.dim(0);
  a.share_shift = 6;
  a.record_bytes = static_cast<int>(cache.dim(2));
  a.fnuz = c.integer("use_fnuz") != 0;
  return a;
}

}  // namespace kvcts
