// The kernels of the CPU targets, each over a range of rows.
#pragma once

#include "optimized/arguments/all.h"
#include "reference/numerics/rules.h"  // the profile's name only

// A kernel's declaration in a target's namespace.
#define KVCTS_KERNEL(K) \
  void K(const K##_arguments& a, profile p, std::int64_t first, std::int64_t last);

namespace kvcts::baseline {
#include "optimized/kernels.def"
}
#ifdef KVCTS_X86_TARGETS
namespace kvcts::avx2 {
#include "optimized/kernels.def"
}
namespace kvcts::avx512 {
#include "optimized/kernels.def"
}
#endif

#undef KVCTS_KERNEL
