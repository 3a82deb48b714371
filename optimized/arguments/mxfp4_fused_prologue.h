// mxfp4_fused_prologue's arguments.
#pragma once

#include "optimized/arguments/prologue.h"

namespace kvcts {

using mxfp4_fused_prologue_arguments = prologue_arguments;

// Of a checked call.
mxfp4_fused_prologue_arguments mxfp4_fused_prologue_of(const call& c);
inline std::int64_t mxfp4_fused_prologue_rows(const mxfp4_fused_prologue_arguments& a) {
  return prologue_rows(a);
}
inline std::int64_t mxfp4_fused_prologue_row_bytes(const mxfp4_fused_prologue_arguments& a) {
  return prologue_row_bytes(a);
}

}  // namespace kvcts
