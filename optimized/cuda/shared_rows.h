// Rows of whole parts that the warps of a block share: each of the tree's warps (warp/norm.h) is
// one of the block. Warp w has parts w, w + Warps, ...
#pragma once

#include "optimized/cuda/norms.h"
#include "optimized/warp/norm.h"

namespace kvcts::device {

// The `warps` that share a row wait for one another. Barrier 0 is the whole block's.
__device__ __forceinline__ void wait_for_row(int barrier, int warps) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(32 * warps) : "memory");
}

template <int Per, int Each>
struct shared_parts {
  group::words<Per / 2> part[Each];
};
template <int Per, int Each, int Warps>
__device__ __forceinline__ shared_parts<Per, Each> load_shared_parts(const unsigned char* from,
                                                                     int warp, int parts,
                                                                     bool live) {
  shared_parts<Per, Each> r = {};
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int part = warp + i * Warps;
    if (live && part < parts) {
      r.part[i] = group::load_words<Per / 2, 32, true>(from + part * (64 * Per), 0, 1);
    }
  }
  return r;
}

// The warp's share of the sum of squares.
template <int Per, int Each, int Warps>
__device__ __forceinline__ float shared_squares(const shared_parts<Per, Each>& row, int warp,
                                                int parts) {
  if (warp >= parts) return 0.0f;
  float sum = squares_in_lane<group, Per>(unpacked<group, Per / 2>(row.part[0]));
#pragma unroll
  for (int i = 1; i < Each; ++i) {
    if (warp + i * Warps < parts) {
      sum = joined_in_lane<group, Per, true>(sum, unpacked<group, Per / 2>(row.part[i]));
    }
  }
  return sum_over_lanes<group>(sum);
}

// The tree over the warps; those from `present` on wrote no sum.
template <int Warps>
__device__ __forceinline__ float sum_over_warps(const float (&of)[8], int present) {
  float sum[Warps];
#pragma unroll
  for (int w = 0; w < Warps; ++w) sum[w] = w < present ? of[w] : 0.0f;
  if constexpr (Warps == 8) {
#pragma unroll
    for (int w = 0; w < 4; ++w) sum[w] = sum[w] + sum[w + 4];
  }
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// RMSNorm's RN(RN(x*r) * w) of a part whose weight is in hand.
template <int Per>
__device__ __forceinline__ row_part<group, Per> rms_normed_part(const group::words<Per / 2>& in,
                                                                const row_part<group, Per>& weight,
                                                                float r) {
  row_part<group, Per> x = unpacked<group, Per / 2>(in);
#pragma unroll
  for (int j = 0; j < Per; ++j) x.v[j] = (x.v[j] * r) * weight.v[j];
  return x;
}

}  // namespace kvcts::device
