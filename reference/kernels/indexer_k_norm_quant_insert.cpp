#include "reference/kernels/indexer_k_norm_quant_insert.h"

#include "reference/contract/registry.h"
#include "reference/kernels/key_insert.h"

namespace kvcts {

void indexer_k_norm_quant_insert(const call& c, const Rules& rules) {
  run_key_insert(c, indexer_k_norm_quant_insert_contract(), key_record::fp8, rules);
}

}  // namespace kvcts
