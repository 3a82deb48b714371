// Bulk copies of the device between memory and a block's shared memory, and the barriers they
// complete on: compute capability 9.0 and above. Addresses and sizes are multiples of 16 bytes.
#pragma once

#include <cstdint>

namespace kvcts::device {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// Completes a phase after `arrivals` of them and the bytes that they expect.
struct phase_barrier {
  std::uint64_t state;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __device__ __forceinline__ void init(std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state)),
                 "r"(arrivals)
                 : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state))
                 : "memory");
  }
  __device__ __forceinline__ void arrive_expecting(std::uint32_t bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)),
        "r"(bytes)
        : "memory");
  }
  // For the end of the phase of this parity; that of the phase before the first is 1.
  __device__ __forceinline__ void wait(std::uint32_t parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(shared_address(&state)),
        "r"(parity)
        : "memory");
  }
#endif
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// Barriers are seen by the copies from here on.
__device__ __forceinline__ void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void bulk_load(void* to, const void* from, std::uint32_t bytes,
                                          phase_barrier& full) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&full.state))
      : "memory");
}
#endif

}  // namespace kvcts::device
