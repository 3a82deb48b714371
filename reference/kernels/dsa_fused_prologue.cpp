#include "reference/kernels/dsa_fused_prologue.h"

#include "reference/contract/registry.h"
#include "reference/kernels/prologue.h"

namespace kvcts {

void dsa_fused_prologue(const call& c, const Rules& rules) {
  run_prologue(c, dsa_fused_prologue_contract(), key_record::fp8, rules);
}

}  // namespace kvcts
