#include "optimized/arguments/quantize_and_insert_k_cache.h"

#include "optimized/arguments/common.h"

namespace kvcts {

quantize_and_insert_k_cache_arguments quantize_and_insert_k_cache_of(const call& c) {
  const tensor_view& k = c.tensor("k");
  const tensor_view& slots = c.tensor("slot_mapping");
  quantize_and_insert_k_cache_arguments a{};
  a.k = first_element(k);
  a.k_row_stride = byte_stride(k, 0);
  a.slots = first_element(slots);
  a.rows = slots.dim(0);
  a.cache = pages_of(c.tensor("k_cache"), c.integer("block_size"));
  a.bytes_per_token = static_cast<int>(c.integer("bytes_per_token"));
  a.fnuz = c.integer("use_fnuz") != 0;
  return a;
}

}  // namespace kvcts
