// Loads, and accesses to memory that a kernel meets once: those need no place in the L1 cache.
#pragma once

#include <cstdint>

namespace kvcts::device {

// A plain load from global memory. ld.global.nc (__ldg) is for what nobody writes while the kernel
// lives, and an earlier kernel may still write when this one starts (cuda/launch.h): ptxas moves
// such loads before the wait, and did for sm_100a.
template <class T>
__device__ __forceinline__ T load_global(const T* from) {
  __builtin_assume(__isGlobal(from));
  return *from;
}

__device__ __forceinline__ uint4 load_once(const void* from) {
  uint4 r;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(from));
  return r;
}
__device__ __forceinline__ void store_once(void* to, const uint4& x) {
  __stcs(static_cast<uint4*>(to), x);
}
__device__ __forceinline__ void store_once(void* to, std::uint32_t x) {
  __stcs(static_cast<unsigned*>(to), x);
}

}  // namespace kvcts::device
