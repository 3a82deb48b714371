#include "optimized/arguments/key_insert.h"

#include <algorithm>

#include "optimized/arguments/common.h"

namespace kvcts {

topk_rows topk_rows_of(const tensor_view& buffer) {
  return {first_element(buffer), byte_stride(buffer, 0), buffer.dim(1)};
}

bool fp8_is_fnuz(const call& c) { return c.text_or("fp8_format", "e4m3fn") == "e4m3fnuz"; }

key_insert_arguments key_insert_of(const call& c) {
  const tensor_view& k = c.tensor("k");
  const tensor_view& slots = c.tensor("slot_mapping");
  const tensor_view& cache = c.tensor("kv_cache");
  key_insert_arguments a{};
  a.tokens = c.integer("num_tokens");
  a.topk = topk_rows_of(c.tensor("topk_indices_buffer"));
  a.keys.k = first_element(k);
  a.keys.k_row_stride = byte_stride(k, 0);
  a.keys.slots = first_element(slots);
  a.keys.rows = std::min(a.tokens, slots.dim(0));
  a.keys.cache = pages_of(cache, cache.dim(1));
  a.keys.weight = norm_vector_of(c.tensor("norm_weight"));
  a.keys.bias = norm_vector_of(c.tensor("norm_bias"));
  a.keys.norm = row_norm_of(k.dim(1), k.dim(1), static_cast<int>(c.integer_or("num_warps", 1)),
                            c.real("norm_eps"));
  a.keys.fnuz = fp8_is_fnuz(c);
  return a;
}

}  // namespace kvcts
