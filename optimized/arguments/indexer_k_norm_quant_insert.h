// indexer_k_norm_quant_insert's arguments.
#pragma once

#include "optimized/arguments/key_insert.h"

namespace kvcts {

using indexer_k_norm_quant_insert_arguments = key_insert_arguments;

// Of a checked call.
indexer_k_norm_quant_insert_arguments indexer_k_norm_quant_insert_of(const call& c);
inline std::int64_t indexer_k_norm_quant_insert_rows(
    const indexer_k_norm_quant_insert_arguments& a) {
  return key_insert_rows(a);
}
inline std::int64_t indexer_k_norm_quant_insert_row_bytes(
    const indexer_k_norm_quant_insert_arguments& a) {
  return key_insert_row_bytes(a);
}

}  // namespace kvcts
