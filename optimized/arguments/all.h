// The arguments of every kernel.
#pragma once

#include "optimized/arguments/build_flashinfer_mixed_sparse_indices.h"
#include "optimized/arguments/combine_topk_swa_indices.h"
#include "optimized/arguments/compute_global_topk_indices_and_lens.h"
#include "optimized/arguments/dequantize_and_gather_k_cache.h"
#include "optimized/arguments/fused_indexer_q_rope_quant.h"
#include "optimized/arguments/fused_inv_rope_fp8_quant.h"
#include "optimized/arguments/fused_layout.h"
#include "optimized/arguments/fused_save_compress_norm.h"
#include "optimized/arguments/indexer_k_norm_rope_store.h"
#include "optimized/arguments/mxfp4_q_quant.h"
#include "optimized/arguments/quantize_and_insert_k_cache.h"
#include "optimized/arguments/rope_quant_insert.h"
