#include "optimized/arguments/dsa_fused_prologue.h"

namespace kvcts {

dsa_fused_prologue_arguments dsa_fused_prologue_of(const call& c) { return prologue_of(c); }

}  // namespace kvcts
