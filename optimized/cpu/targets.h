// The kernels of one CPU target, over a range of tokens.
#pragma once

#include "optimized/kernels/arguments.h"
#include "reference/numerics/rules.h"  // the profile's name only

namespace kvcts {

struct cpu_kernels {
  const char* name;
  void (*mxfp4_q_quant)(const mxfp4_q_quant_arguments&, profile, std::int64_t first,
                        std::int64_t last);
  void (*quantize_and_insert)(const quantize_and_insert_arguments&, profile, std::int64_t first,
                              std::int64_t last);
};

namespace baseline {
extern const cpu_kernels kernels;
}
#ifdef KVCTS_X86_TARGETS
namespace avx2 {
extern const cpu_kernels kernels;
}
namespace avx512 {
extern const cpu_kernels kernels;
}
#endif

}  // namespace kvcts
