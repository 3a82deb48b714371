#include "reference/contract/contract.h"

#include "reference/contract/registry.h"

namespace kvcts {

const argument_spec* kernel_contract::argument(std::string_view argument_name) const {
  for (const argument_spec& spec : arguments) {
    if (spec.name == argument_name) return &spec;
  }
  return nullptr;
}

const attribute_spec* kernel_contract::attribute(std::string_view attribute_name) const {
  for (const attribute_spec& spec : attributes) {
    if (spec.name == attribute_name) return &spec;
  }
  return nullptr;
}

const std::vector<const kernel_contract*>& contracts() {
  static const std::vector<const kernel_contract*> all = {
      &mxfp4_q_quant_contract(),
      &mxfp4_k_norm_quant_insert_contract(),
      &mxfp4_fused_prologue_contract(),
      &indexer_k_norm_quant_insert_contract(),
      &dsa_fused_prologue_contract(),
      &quantize_and_insert_k_cache_contract(),
      &dequantize_and_gather_k_cache_contract(),
      &compute_global_topk_indices_and_lens_contract(),
      &combine_topk_swa_indices_contract(),
      &build_flashinfer_mixed_sparse_indices_contract(),
      &fused_indexer_q_rope_quant_contract(),
      &fused_inv_rope_fp8_quant_contract(),
      &indexer_k_norm_rope_store_contract(),
      &fused_save_compress_norm_contract(),
      &rope_quant_insert_contract(),
      &fused_layout_contract(),
      &fused_q_kv_rmsnorm_quant_contract(),
  };
  return all;
}

const kernel_contract& contract_of(std::string_view kernel) {
  std::string known;
  for (const kernel_contract* contract : contracts()) {
    if (contract->name == kernel) return *contract;
    known += (known.empty() ? "" : ", ") + std::string(contract->name);
  }
  throw input_error("unknown kernel '" + std::string(kernel) + "': the kernels are " + known);
}

}  // namespace kvcts
