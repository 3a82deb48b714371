// Accesses to memory that a kernel meets once: they need no place in the L1 cache.
#pragma once

#include <cstdint>

namespace kvcts::device {

// Measured constants: whether the hints are given.
#ifndef KVCTS_LOAD_HINT
#define KVCTS_LOAD_HINT 1
#endif
#ifndef KVCTS_STORE_HINT
#define KVCTS_STORE_HINT 1
#endif

__device__ __forceinline__ uint4 load_once(const void* from) {
  uint4 r;
#if KVCTS_LOAD_HINT
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
      : "l"(from));
#else
  r = __ldg(static_cast<const uint4*>(from));
#endif
  return r;
}
__device__ __forceinline__ void store_once(void* to, const uint4& x) {
#if KVCTS_STORE_HINT
  __stcs(static_cast<uint4*>(to), x);
#else
  *static_cast<uint4*>(to) = x;
#endif
}
__device__ __forceinline__ void store_once(void* to, std::uint32_t x) {
#if KVCTS_STORE_HINT
  __stcs(static_cast<unsigned*>(to), x);
#else
  *static_cast<unsigned*>(to) = x;
#endif
}

}  // namespace kvcts::device
