#include "optimized/arguments/mxfp4_fused_prologue.h"

namespace kvcts {

mxfp4_fused_prologue_arguments mxfp4_fused_prologue_of(const call& c) { return prologue_of(c); }

}  // namespace kvcts
