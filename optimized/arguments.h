// From a checked call to the kernels' plain arguments.
#pragma once

#include "optimized/kernels/arguments.h"
#include "reference/layout/tensor.h"

namespace kvcts {

mxfp4_q_quant_arguments mxfp4_q_quant_of(const call& c);
quantize_and_insert_arguments quantize_and_insert_of(const call& c);

}  // namespace kvcts
