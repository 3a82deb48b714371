// The fused prologues: two RMSNorms, the fp8_ds_mla insert, the index key insert, the top-k fill.
#pragma once

#include "reference/kernels/key_insert.h"

namespace kvcts {

// A whole kernel: the arguments of prologue_contract().
void run_prologue(const call& c, const kernel_contract& contract, key_record record,
                  const Rules& rules);

}  // namespace kvcts
