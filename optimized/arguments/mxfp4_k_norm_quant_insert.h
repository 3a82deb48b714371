// mxfp4_k_norm_quant_insert's arguments.
#pragma once

#include "optimized/arguments/key_insert.h"

namespace kvcts {

using mxfp4_k_norm_quant_insert_arguments = key_insert_arguments;

// Of a checked call.
mxfp4_k_norm_quant_insert_arguments mxfp4_k_norm_quant_insert_of(const call& c);
inline std::int64_t mxfp4_k_norm_quant_insert_rows(const mxfp4_k_norm_quant_insert_arguments& a) {
  return key_insert_rows(a);
}
inline std::int64_t mxfp4_k_norm_quant_insert_row_bytes(
    const mxfp4_k_norm_quant_insert_arguments& a) {
  return key_insert_row_bytes(a);
}

}  // namespace kvcts
