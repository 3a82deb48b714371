#include "reference/contract/key_insert.h"
#include "reference/contract/registry.h"

namespace kvcts {

const kernel_contract& mxfp4_k_norm_quant_insert_contract() {
  static const kernel_contract contract = key_insert_contract({
      .name = "mxfp4_k_norm_quant_insert",
      .summary = "LayerNorm of the index key in f32, MXFP4, insert into a paged cache, and the -1 "
                 "fill of the top-k rows.",
      .captured = "D 128 with 1, 2 and 4 warps, D 64 and 256 with 1; profile nvidia",
      .derived = "other D and warps (the LayerNorm of each is captured by itself); slots below -1; "
                 "profile ieee",
      .form = mxfp4_key_form,
  });
  return contract;
}

}  // namespace kvcts
