// The parts of the catalogue, and the names of kernels that share a rule.
#pragma once

#include <initializer_list>

#include "conformance/faults/faults.h"

namespace kvcts::fault_parts {

void add_elements(std::vector<fault>& to);
void add_scales(std::vector<fault>& to);
void add_arithmetic(std::vector<fault>& to);
void add_layout(std::vector<fault>& to);
void add_indices(std::vector<fault>& to);

inline constexpr std::string_view q_quant = "mxfp4_q_quant";
inline constexpr std::string_view key_mxfp4 = "mxfp4_k_norm_quant_insert";
inline constexpr std::string_view key_fp8 = "indexer_k_norm_quant_insert";
inline constexpr std::string_view prologue_mxfp4 = "mxfp4_fused_prologue";
inline constexpr std::string_view prologue_fp8 = "dsa_fused_prologue";
inline constexpr std::string_view insert = "quantize_and_insert_k_cache";
inline constexpr std::string_view gather = "dequantize_and_gather_k_cache";
inline constexpr std::string_view query = "fused_indexer_q_rope_quant";
inline constexpr std::string_view inverse = "fused_inv_rope_fp8_quant";
inline constexpr std::string_view key_rope = "indexer_k_norm_rope_store";
inline constexpr std::string_view norm_quant = "fused_q_kv_rmsnorm_quant";
inline constexpr std::string_view compress = "fused_save_compress_norm";
inline constexpr std::string_view rope_insert = "rope_quant_insert";
inline constexpr std::string_view global_topk = "compute_global_topk_indices_and_lens";
inline constexpr std::string_view combine = "combine_topk_swa_indices";
inline constexpr std::string_view mixed = "build_flashinfer_mixed_sparse_indices";
inline constexpr std::string_view layout = "fused_layout";

using names = std::initializer_list<std::string_view>;
// One list of several.
inline std::vector<std::string_view> all_of(std::initializer_list<names> lists) {
  std::vector<std::string_view> all;
  for (const names& list : lists) all.insert(all.end(), list);
  return all;
}

}  // namespace kvcts::fault_parts
