// The optimized kernels, as the built-in candidates `cpu` and `cuda` run them. They share argument
// and layout types with the reference, and no arithmetic.
#pragma once

#include <string>
#include <string_view>

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// --- CPU. The call's tensors are in host memory; it has passed check().
bool cpu_supports(std::string_view kernel);
void run_cpu(const call& c, profile p, int threads);
// The instruction set chosen at run time: "avx512", "avx2" or "baseline".
std::string cpu_target();
// Chooses another one than the best ("avx2" on an AVX-512 machine), for tests. Throws input_error
// where the machine lacks it.
void set_cpu_target(std::string_view target);

// --- CUDA. Present in every build; where it was built without CUDA, cuda_available() is false and
// says why. The call's tensors are in DEVICE memory here; work is queued on `stream` (a
// cudaStream_t).
struct cuda_status {
  bool available = false;
  std::string why_not;  // "built without CUDA", "no CUDA device: ..."
  std::string device, driver, compiler;
  int multiprocessors = 0;
};
cuda_status cuda_available();
bool cuda_supports(std::string_view kernel);
void run_cuda(const call& c, profile p, void* stream);
// Copies a host call's buffers to the device, runs, copies every storage back (whole buffers, so
// that a stray write shows). Throws std::runtime_error with CUDA's message on a CUDA error.
void run_cuda_on_host_buffers(const call& c, profile p);

}  // namespace kvcts
