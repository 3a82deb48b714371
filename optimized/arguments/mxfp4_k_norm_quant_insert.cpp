#include "optimized/arguments/mxfp4_k_norm_quant_insert.h"

namespace kvcts {

mxfp4_k_norm_quant_insert_arguments mxfp4_k_norm_quant_insert_of(const call& c) {
  return key_insert_of(c);
}

}  // namespace kvcts
