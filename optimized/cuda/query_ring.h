// fused_indexer_q_rope_quant of usual heads that lie one behind the other, where there is work for
// the whole device: blocks that stay, each with a ring of stages in shared memory. A stage is a
// block's heads of a token and the token's row of the table; a warp starts the bulk copies that
// fill it, up to three tokens ahead of the warps that make codes of them. Compute capability 9.0.
#pragma once

#include <algorithm>

#include "optimized/cuda/bulk.h"
#include "optimized/cuda/heads.h"
#include "optimized/cuda/query_rows.h"

namespace kvcts {

// Measured on an H200, of a copy: 0.94 (E4M3) and 0.97 (MXFP4); loads into registers 0.93 and 0.92.
// Larger blocks have too few warps for MXFP4's instructions: two of 8 warps 0.92 and 0.76, three
// 0.88 and 0.80.
struct query_ring {
  static constexpr int quads = 4;  // a warp; four heads each, a row of 8 lanes one
  static constexpr int warps = 4;  // that make codes
  static constexpr int stages = 3;
  static constexpr int blocks = 4;  // at once
  static constexpr int threads = 32 * (warps + 1);

  static constexpr int head_bytes = 256;
  static constexpr int warp_heads = 4 * quads;
  static constexpr int heads = warp_heads * warps;  // a block
  static constexpr int angles_at = heads * head_bytes;
  static constexpr int stage_bytes = angles_at + 256;
  static constexpr int shared_bytes = stages * stage_bytes;

  unsigned char* memory;
  device::phase_barrier* full;
  device::phase_barrier* empty;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// The stage of a token. `parity` is that of the ring's turn.
struct ring_place {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage < query_ring::stages) return;
    stage = 0;
    parity ^= 1u;
  }
};

// Tokens blockIdx.x, blockIdx.x + gridDim.x, ..., heads from `head` on.
__device__ __forceinline__ void fill_ring(const fused_indexer_q_rope_quant_arguments& a,
                                          std::int64_t head, const query_ring& ring) {
  const std::int64_t heads = ::min(a.heads - head, std::int64_t{query_ring::heads});
  const auto q_bytes = static_cast<std::uint32_t>(heads) * query_ring::head_bytes;
  const std::uint32_t angle_bytes = a.table.is_f32 ? 256 : 128;
  const std::uint32_t lane = device::group::lane();
  const std::int64_t step = gridDim.x;
  // Positions come 32 tokens at a time, a lane each, before they are needed.
  const auto load_position = [&](std::int64_t first) {
    const std::int64_t token = first + lane * step;
    return token < a.tokens
               ? device::load_global(reinterpret_cast<const long long*>(a.positions) + token)
               : 0;
  };
  ring_place at;
  long long next = load_position(blockIdx.x);
  for (std::int64_t first = blockIdx.x; first < a.tokens; first += 32 * step) {
    const long long positions = next;
    next = load_position(first + 32 * step);
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      const std::int64_t token = first + i * step;
      if (token >= a.tokens) return;
      const long long position = __shfl_sync(0xFFFFFFFFu, positions, i);
      if (lane == 0) {
        unsigned char* to = ring.memory + at.stage * query_ring::stage_bytes;
        device::phase_barrier& full = ring.full[at.stage];
        ring.empty[at.stage].wait(at.parity ^ 1u);
        full.arrive_expecting(q_bytes + angle_bytes);
        device::bulk_load(to, device::query_head(a, token, head), q_bytes, full);
        device::bulk_load(to + query_ring::angles_at, device::angles_of(a.table, position),
                          angle_bytes, full);
      }
      at.advance();
    }
  }
}

__device__ __forceinline__ device::angles<device::group> ring_angles(const unsigned char* row,
                                                                     bool is_f32) {
  using namespace device;
  const std::uint32_t lane = lane_in_row();
  if (is_f32) {
    const auto* four = reinterpret_cast<const uint4*>(row) + lane;
    return angles_of_f32(four[0], four[row_lanes]);
  }
  const auto* two = reinterpret_cast<const uint2*>(row) + lane;
  return angles_of_bf16(two[0], two[row_lanes]);
}

// Lanes 2i and 2i + 1 exchange codes: the even one has both of the low half then, the odd one both
// of the high half, so that one access of a row covers a head.
__device__ __forceinline__ uint2 exchanged(std::uint32_t low, std::uint32_t high) {
  const bool odd = device::lane_in_row() % 2 == 1;
  const std::uint32_t got = device::group::shuffle_xor<1>(odd ? low : high);
  return make_uint2(odd ? got : low, odd ? high : got);
}
__device__ __forceinline__ uint4 exchanged(const uint2& low, const uint2& high) {
  const uint2 x = exchanged(low.x, high.x);
  const uint2 y = exchanged(low.y, high.y);
  return make_uint4(x.x, y.x, x.y, y.y);
}
// Where a lane's begin in a head's codes.
template <int CodeBytes>
__device__ __forceinline__ std::uint32_t exchanged_at() {
  const std::uint32_t lane = device::lane_in_row();
  return lane % 2 * (CodeBytes / 2) + lane / 2 * (CodeBytes / 8);
}

// The scales that lane q of a row writes: those of its head of quad q. In MXFP4 lane q + 4 gathers
// its own of the same head.
template <bool Fp4>
struct gathered_scales {
  std::uint32_t word = 0;
  __device__ __forceinline__ void add(int pair, const device::row_codes<Fp4, 2>& x) {
    const auto lane = static_cast<int>(device::lane_in_row());
    if constexpr (Fp4) {
      word = lane % 4 == 2 * pair ? x.scales[0] : word;
      word = lane % 4 == 2 * pair + 1 ? x.scales[1] : word;
    } else {
      word = lane / 2 == pair ? x.scales[0] : word;
    }
  }
  __device__ __forceinline__ std::uint32_t own() const {
    if constexpr (Fp4) return device::four_scales(word);
    return device::lane_in_row() % 2 == 1 ? word >> 16 : word & 0xFFFFu;
  }
};

template <bool Fp4>
__device__ __forceinline__ void quantize_ring(const fused_indexer_q_rope_quant_arguments& a,
                                              std::int64_t head, const query_ring& ring) {
  using namespace device;
  using G = group;
  constexpr int quads = query_ring::quads;
  constexpr int code_bytes = Fp4 ? 64 : 128;  // a head
  const std::uint32_t lane = lane_in_row();
  const std::uint32_t row = row_in_warp();
  const std::uint32_t in_block = threadIdx.x / 32 * query_ring::warp_heads + row;
  const std::int64_t first = head + in_block;  // of the row's heads, four apart
  // Quads with a head of this row. Others read what an earlier stage left, and store nothing.
  const std::int64_t left = ::max(a.heads - first, std::int64_t{0});
  const auto present = static_cast<int>(::min((left + 3) / 4, std::int64_t{quads}));
  const std::int64_t own_head = first + 4 * lane;
  const bool has_own = static_cast<int>(lane) < present;
  const auto weight_of = [&](std::int64_t token) {
    return has_own && token < a.tokens ? load_weight(a, token, own_head) : 0;
  };

  ring_place at;
  std::uint32_t next_weight = weight_of(blockIdx.x);
  for (std::int64_t token = blockIdx.x; token < a.tokens; token += gridDim.x) {
    const std::uint32_t weight = next_weight;
    next_weight = weight_of(token + gridDim.x);
    const unsigned char* stage = ring.memory + at.stage * query_ring::stage_bytes;
    const unsigned char* from = stage + in_block * query_ring::head_bytes + lane * 16;
    unsigned char* codes =
        a.codes + (token * a.heads + first) * code_bytes + exchanged_at<code_bytes>();
    ring.full[at.stage].wait(at.parity);
    __syncwarp();
    const angles<G> turned = ring_angles(stage + query_ring::angles_at, a.table.is_f32);
    gathered_scales<Fp4> scales;
    KVCTS_UNROLL for (int pair = 0; pair < quads / 2; ++pair) {
      G::bf16x8 low[2];
      G::bf16x8 high[2];
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const auto* q =
            reinterpret_cast<const uint4*>(from + (2 * pair + i) * 4 * query_ring::head_bytes);
        low[i] = words_of(q[0]);
        high[i] = words_of(q[row_lanes]);
      }
      if (pair == quads / 2 - 1) {  // all is read
        __syncwarp();
        if (G::lane() == 0) ring.empty[at.stage].arrive();
      }
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        high[i] = rotated_bf16<G, rope_form::query>(high[i], turned);
      }
      const row_codes<Fp4, 2> r = quantize_heads<Fp4>(low, high);
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const auto words = exchanged(r.low[i], r.high[i]);
        const int quad = 2 * pair + i;
        if (quad < present) store_codes(codes + quad * 4 * code_bytes, words);
      }
      scales.add(pair, r);
    }
    const std::uint32_t own = scales.own();
    if (has_own) store_scales_and_weight<Fp4>(a, token * a.heads + own_head, own, weight);
    at.advance();
  }
}
#endif

// blockIdx.y: the block's heads.
template <bool Fp4>
__global__ void __launch_bounds__(query_ring::threads, query_ring::blocks)
    query_ring_kernel(const __grid_constant__ fused_indexer_q_rope_quant_arguments a) {
  wait_for_earlier_kernel();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ device::phase_barrier full[query_ring::stages];
  __shared__ device::phase_barrier empty[query_ring::stages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < query_ring::stages; ++i) {
      full[i].init(1);
      empty[i].init(query_ring::warps);
    }
    device::fence_barriers();
  }
  __syncthreads();
  const query_ring ring = {memory, full, empty};
  const std::int64_t head = static_cast<std::int64_t>(blockIdx.y) * query_ring::heads;
  if (threadIdx.x / 32 == query_ring::warps) {
    fill_ring(a, head, ring);
  } else {
    quantize_ring<Fp4>(a, head, ring);
  }
#endif
}

// Of aligned arguments. Where heads fill less than half a block, its warps would mostly rest.
inline bool is_for_query_ring(const fused_indexer_q_rope_quant_arguments& a) {
  return a.q_head_stride == query_ring::head_bytes && is_multiple(a.codes, 16) &&
         a.heads > query_ring::heads / 2 && a.heads <= largest_grid_y * query_ring::heads &&
         a.tokens * a.heads > 16 * few_warps && runs_code_for_9_0();
}

template <bool Fp4>
void launch_query_ring(const fused_indexer_q_rope_quant_arguments& a, cudaStream_t stream,
                       const char* name) {
  int device = 0;
  int processors = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
             "number of multiprocessors");
  cuda_check(
      cudaFuncSetAttribute(query_ring_kernel<Fp4>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           query_ring::shared_bytes),
      name);
  const std::int64_t at_once = static_cast<std::int64_t>(processors) * query_ring::blocks;
  const dim3 grid(static_cast<unsigned>(std::min(a.tokens, at_once)),
                  static_cast<unsigned>((a.heads + query_ring::heads - 1) / query_ring::heads));
  launch_shared(query_ring_kernel<Fp4>, grid, query_ring::threads, query_ring::shared_bytes, stream,
                name, a);
}

}  // namespace kvcts
