#include "reference/kernels/kernels.h"

#include <utility>

#include "reference/kernels/build_flashinfer_mixed_sparse_indices.h"
#include "reference/kernels/combine_topk_swa_indices.h"
#include "reference/kernels/compute_global_topk_indices_and_lens.h"
#include "reference/kernels/dequantize_and_gather_k_cache.h"
#include "reference/kernels/dsa_fused_prologue.h"
#include "reference/kernels/fused_indexer_q_rope_quant.h"
#include "reference/kernels/fused_inv_rope_fp8_quant.h"
#include "reference/kernels/fused_layout.h"
#include "reference/kernels/fused_q_kv_rmsnorm_quant.h"
#include "reference/kernels/fused_save_compress_norm.h"
#include "reference/kernels/indexer_k_norm_quant_insert.h"
#include "reference/kernels/indexer_k_norm_rope_store.h"
#include "reference/kernels/mxfp4_fused_prologue.h"
#include "reference/kernels/mxfp4_k_norm_quant_insert.h"
#include "reference/kernels/mxfp4_q_quant.h"
#include "reference/kernels/quantize_and_insert_k_cache.h"
#include "reference/kernels/rope_quant_insert.h"

namespace kvcts {
namespace {

constexpr std::pair<std::string_view, reference_function> references[] = {
    {"mxfp4_q_quant", mxfp4_q_quant},
    {"mxfp4_k_norm_quant_insert", mxfp4_k_norm_quant_insert},
    {"mxfp4_fused_prologue", mxfp4_fused_prologue},
    {"indexer_k_norm_quant_insert", indexer_k_norm_quant_insert},
    {"dsa_fused_prologue", dsa_fused_prologue},
    {"quantize_and_insert_k_cache", quantize_and_insert_k_cache},
    {"dequantize_and_gather_k_cache", dequantize_and_gather_k_cache},
    {"compute_global_topk_indices_and_lens", compute_global_topk_indices_and_lens},
    {"combine_topk_swa_indices", combine_topk_swa_indices},
    {"build_flashinfer_mixed_sparse_indices", build_flashinfer_mixed_sparse_indices},
    {"fused_layout", fused_layout},
    {"fused_indexer_q_rope_quant", fused_indexer_q_rope_quant},
    {"fused_inv_rope_fp8_quant", fused_inv_rope_fp8_quant},
    {"indexer_k_norm_rope_store", indexer_k_norm_rope_store},
    {"fused_save_compress_norm", fused_save_compress_norm},
    {"rope_quant_insert", rope_quant_insert},
    {"fused_q_kv_rmsnorm_quant", fused_q_kv_rmsnorm_quant},
};

}  // namespace

reference_function reference_of(std::string_view kernel) {
  for (const auto& [name, function] : references) {
    if (name == kernel) return function;
  }
  return nullptr;
}

}  // namespace kvcts
