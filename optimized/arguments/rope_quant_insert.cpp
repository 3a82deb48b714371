#include "optimized/arguments/rope_quant_insert.h"

#include "optimized/arguments/common.h"

namespace kvcts {
namespace {

latent_record record_named(const std::string& name) {
  if (name == "v4") return latent_record::v4;
  if (name == "v41_mxfp8") return latent_record::v41_mxfp8;
  if (name == "v41_nvfp4") return latent_record::v41_nvfp4;
  if (name == "bf16") return latent_record::bf16;
  return latent_record::fp8;
}

}  // namespace

rope_quant_insert_arguments rope_quant_insert_of(const call& c) {
  const tensor_view& latent = c.tensor("latent");
  const tensor_view& cache = c.tensor("kv_cache");
  rope_quant_insert_arguments a{};
  a.latent = first_element(latent);
  a.latent_row_stride = byte_stride(latent, 0);
  a.at =
      group_rows_of(c.tensor("slot_mapping"), c.tensor("positions"), c.integer("compress_ratio"));
  a.table = cos_sin_of(c.tensor("cos_sin_cache"));
  a.cache = pages_of(cache, cache.dim(1));
  a.entry_stride = byte_stride(cache, 1);
  a.fp8_scale = first_element(c.find("fp8_scale"));
  a.record = record_named(c.text("record"));
  return a;
}

}  // namespace kvcts
