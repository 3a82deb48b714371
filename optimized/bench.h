// Speed of the optimized kernels. Ratios are taken in one run, on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// --- CUDA. Throws std::runtime_error where there is no device, or on a CUDA error.

struct cuda_bench_row {
  std::string op;
  std::string size;
  std::int64_t bytes = 0;  // read and written
  double time_us = 0;
  double copy_time_us = 0;   // a device-to-device copy of bytes/2: as many read and written
  double share_of_copy = 0;  // copy_time_us / time_us
};
// Large sizes: medians, over buffers that the L2 cache does not hold.
std::vector<cuda_bench_row> bench_cuda();

struct cuda_decode_row {
  std::string op;
  std::int64_t tokens = 0;
  double time_us = 0;   // a launch in a replayed graph
  double empty_us = 0;  // the same of a kernel that does nothing
};
std::vector<cuda_decode_row> bench_cuda_decode();

// --- CPU.

struct cpu_bench_row {
  std::string op;
  // GB of input a second.
  double candidate_gbs = 0;  // one thread
  double reference_gbs = 0;  // one thread
  double memcpy_gbs = 0;     // one thread, of the input
  double ratio = 0;          // candidate / reference
  int threads = 0;
  double threads_gbs = 0;  // the candidate on all of them
};
// The reference comes from the caller: the optimized kernels do not depend on it.
using bench_function = void (*)(const call&, profile);
std::vector<cpu_bench_row> bench_cpu(bench_function reference, int threads);

}  // namespace kvcts
