#include "reference/kernels/mxfp4_fused_prologue.h"

#include "reference/contract/registry.h"
#include "reference/kernels/prologue.h"

namespace kvcts {

void mxfp4_fused_prologue(const call& c, const Rules& rules) {
  run_prologue(c, mxfp4_fused_prologue_contract(), key_record::mxfp4, rules);
}

}  // namespace kvcts
