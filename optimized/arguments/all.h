// The arguments of every kernel.
#pragma once

#include "optimized/arguments/dsa_fused_prologue.h"
#include "optimized/arguments/fused_q_kv_rmsnorm_quant.h"
#include "optimized/arguments/fused_save_compress_norm.h"
#include "optimized/arguments/indexer_k_norm_quant_insert.h"
#include "optimized/arguments/mxfp4_fused_prologue.h"
#include "optimized/arguments/mxfp4_k_norm_quant_insert.h"
#include "optimized/arguments/mxfp4_q_quant.h"
#include "optimized/arguments/quantize_and_insert_k_cache.h"
