// One function a kernel: its declaration. contract.cpp lists them in the order of docs/kernels.md.
#pragma once

#include "reference/contract/contract.h"

namespace kvcts {

const kernel_contract& mxfp4_q_quant_contract();
const kernel_contract& quantize_and_insert_k_cache_contract();

}  // namespace kvcts
