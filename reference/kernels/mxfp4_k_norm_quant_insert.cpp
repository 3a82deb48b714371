#include "reference/kernels/mxfp4_k_norm_quant_insert.h"

#include "reference/contract/registry.h"
#include "reference/kernels/key_insert.h"

namespace kvcts {

void mxfp4_k_norm_quant_insert(const call& c, const Rules& rules) {
  run_key_insert(c, mxfp4_k_norm_quant_insert_contract(), key_record::mxfp4, rules);
}

}  // namespace kvcts
