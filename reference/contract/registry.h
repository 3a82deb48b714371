// One function a kernel: its declaration. contract.cpp lists them in the order of docs/kernels.md.
#pragma once

#include "reference/contract/contract.h"

namespace kvcts {

const kernel_contract& mxfp4_q_quant_contract();
const kernel_contract& mxfp4_k_norm_quant_insert_contract();
const kernel_contract& mxfp4_fused_prologue_contract();
const kernel_contract& indexer_k_norm_quant_insert_contract();
const kernel_contract& dsa_fused_prologue_contract();
const kernel_contract& quantize_and_insert_k_cache_contract();
const kernel_contract& dequantize_and_gather_k_cache_contract();
const kernel_contract& compute_global_topk_indices_and_lens_contract();
const kernel_contract& combine_topk_swa_indices_contract();
const kernel_contract& build_flashinfer_mixed_sparse_indices_contract();
const kernel_contract& fused_indexer_q_rope_quant_contract();
const kernel_contract& fused_inv_rope_fp8_quant_contract();
const kernel_contract& indexer_k_norm_rope_store_contract();
const kernel_contract& fused_save_compress_norm_contract();
const kernel_contract& rope_quant_insert_contract();
const kernel_contract& fused_layout_contract();
const kernel_contract& fused_q_kv_rmsnorm_quant_contract();

}  // namespace kvcts
