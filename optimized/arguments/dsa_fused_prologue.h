// dsa_fused_prologue's arguments.
#pragma once

#include "optimized/arguments/prologue.h"

namespace kvcts {

using dsa_fused_prologue_arguments = prologue_arguments;

// Of a checked call.
dsa_fused_prologue_arguments dsa_fused_prologue_of(const call& c);
inline std::int64_t dsa_fused_prologue_rows(const dsa_fused_prologue_arguments& a) {
  return prologue_rows(a);
}
inline std::int64_t dsa_fused_prologue_row_bytes(const dsa_fused_prologue_arguments& a) {
  return prologue_row_bytes(a);
}

}  // namespace kvcts
