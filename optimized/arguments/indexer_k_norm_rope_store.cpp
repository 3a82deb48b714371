#include "optimized/arguments/indexer_k_norm_rope_store.h"

#include "optimized/arguments/common.h"

namespace kvcts {

indexer_k_norm_rope_store_arguments indexer_k_norm_rope_store_of(const call& c) {
  const tensor_view& k = c.tensor("k_pre");
  const tensor_view& weight = c.tensor("rms_norm_weight");
  const tensor_view& cache = c.tensor("k_cache");
  indexer_k_norm_rope_store_arguments a{};
  a.k = first_element(k);
  a.k_row_stride = byte_stride(k, 0);
  a.at = group_rows_of(c.tensor("kv_slot_mapping"), c.tensor("positions"),
                       c.integer("compress_ratio"));
  a.table = cos_sin_of(c.tensor("cos_sin_cache"));
  a.weight = first_element(weight);
  a.cache = pages_of(cache, cache.dim(1));
  a.eps = c.real("rms_norm_eps");
  a.weight_is_f32 = weight.type == dtype::f32;
  a.mxfp4 = c.integer("use_fp4_cache") != 0;
  a.tiled = c.integer("shuffle") != 0;
  return a;
}

}  // namespace kvcts
