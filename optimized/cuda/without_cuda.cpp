// The `cuda` candidate of a build without CUDA.
#include <stdexcept>

#include "optimized/bench.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

constexpr const char* reason = "built without CUDA";

}  // namespace

cuda_status cuda_available() {
  cuda_status status;
  status.why_not = reason;
  return status;
}

bool cuda_supports(std::string_view /*kernel*/) { return false; }
void run_cuda(const call& /*c*/, profile /*p*/, void* /*stream*/) {
  throw std::runtime_error(reason);
}
void run_cuda_on_host_buffers(const call& /*c*/, profile /*p*/) {
  throw std::runtime_error(reason);
}

std::vector<cuda_bench_row> bench_cuda(const bench_choice& /*choice*/) {
  throw std::runtime_error(reason);
}
cuda_decode bench_cuda_decode(const bench_choice& /*choice*/) { throw std::runtime_error(reason); }

}  // namespace kvcts
