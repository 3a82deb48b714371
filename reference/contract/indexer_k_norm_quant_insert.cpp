#include "reference/contract/key_insert.h"
#include "reference/contract/registry.h"

namespace kvcts {

const kernel_contract& indexer_k_norm_quant_insert_contract() {
  static const kernel_contract contract = key_insert_contract({
      .name = "indexer_k_norm_quant_insert",
      .summary = "LayerNorm of the index key in f32, FP8 with one power-of-two scale a token, "
                 "insert into a paged cache, and the -1 fill of the top-k rows.",
      .captured = "D 128, OCP codes, 1 and 4 warps, f32 weight and bias, profile nvidia",
      .derived = "other D; 2 warps; bf16 weight and bias; FNUZ codes; slots below -1; profile ieee",
      .form = fp8_key_form,
  });
  return contract;
}

}  // namespace kvcts
