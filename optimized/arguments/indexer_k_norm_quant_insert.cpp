#include "optimized/arguments/indexer_k_norm_quant_insert.h"

namespace kvcts {

indexer_k_norm_quant_insert_arguments indexer_k_norm_quant_insert_of(const call& c) {
  return key_insert_of(c);
}

}  // namespace kvcts
