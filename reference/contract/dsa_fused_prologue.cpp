#include "reference/contract/key_insert.h"
#include "reference/contract/registry.h"

namespace kvcts {

const kernel_contract& dsa_fused_prologue_contract() {
  static const kernel_contract contract = prologue_contract({
      .name = "dsa_fused_prologue",
      .summary = "RMSNorm of the compressed query and KV, fp8_ds_mla insert, LayerNorm + FP8 "
                 "insert of the index key, and the -1 fill of the top-k rows, in one launch.",
      .captured = "Q 1536, D 128, both caches, OCP codes, both tile rules, 4 warps, bf16 RMSNorm "
                  "weights, profile nvidia",
      .derived = "other Q and D; an absent cache; FNUZ codes; 1 and 2 warps; f32 RMSNorm weights; "
                 "slots below -1; profile ieee",
      .form = fp8_key_form,
  });
  return contract;
}

}  // namespace kvcts
