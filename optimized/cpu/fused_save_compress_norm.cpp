#include "optimized/kernels/fused_save_compress_norm.h"

#include "optimized/cpu/kernel.h"

namespace kvcts::KVCTS_TARGET {

template <profile P>
static void run_tasks(const fused_save_compress_norm_arguments& a, std::int64_t first,
                      std::int64_t last) {
  for (std::int64_t task = first; task < last; ++task) {
    save_compress_norm_task<group, P, false>(a, task);
  }
}

void fused_save_compress_norm(const fused_save_compress_norm_arguments& a, profile p,
                              std::int64_t first, std::int64_t last) {
  (p == profile::nvidia ? run_tasks<profile::nvidia> : run_tasks<profile::ieee>)(a, first, last);
}

}  // namespace kvcts::KVCTS_TARGET
