#include <algorithm>

#include "optimized/cuda/launch.h"
#include "optimized/cuda/packed_bf16.h"
#include "optimized/kernels/indexer_k_norm_rope_store.h"

// 0: as measured so far. 1: 10 blocks an SM. 2: as 1, a lane stores 16 bytes. 3: keys and angles by
// bulk copies, 4 lanes a key. 4: as 3, 10 blocks an SM. 5: as 3, a persistent ring of two stages.
// 6: keys and angles by cp.async, two batches a warp. 7: as 3, streamed stores and keys that L2
// drops first.
#pragma nv_diag_suppress 177  // each variant leaves others' functions unused
#ifndef KVCTS_VARIANT
#define KVCTS_VARIANT 0
#endif

namespace kvcts {
namespace {

constexpr int variant = KVCTS_VARIANT;
constexpr int block_warps = 4;
constexpr bool wide_stores = variant == 2 || variant == 6;
constexpr bool staged = variant == 3 || variant == 4 || variant == 5 || variant == 7;
constexpr bool ring = variant == 5;
constexpr bool streamed = variant == 7;

KVCTS_INLINE device::group_row row_in_lane(const device::group_row& r, int lane) {
  return {__shfl_sync(0xFFFFFFFFu, r.row, lane), __shfl_sync(0xFFFFFFFFu, r.slot, lane),
          __shfl_sync(0xFFFFFFFFu, r.position, lane)};
}

// At any address. A warp takes the live ones of rows_a_warp rows by twos.
template <profile P, bool Mxfp4>
__global__ void __launch_bounds__(32 * block_warps)
    store_unaligned_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a,
                           int rows_a_warp) {
  wait_for_earlier_kernel();
  using G = device::group;
  const auto weights = device::load_key_weights<G, false>(a);
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * block_warps;
  for (std::int64_t task = static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32;
       task * rows_a_warp < a.at.rows; task += warps) {
    const std::int64_t row = task * rows_a_warp + G::lane();
    device::group_row mine = {};
    const bool live = G::lane() < rows_a_warp && row < a.at.rows &&
                      device::load_group_row<G, false>(a.at, row, mine);
    unsigned waiting = __ballot_sync(0xFFFFFFFFu, live);
    while (waiting != 0) {
      const int one = __ffs(waiting) - 1;
      waiting &= waiting - 1;
      const int keys = waiting != 0 ? 2 : 1;
      const int two = waiting != 0 ? __ffs(waiting) - 1 : one;
      waiting &= waiting - 1;  // stays 0
      device::store_keys<G, P, Mxfp4, false>(a, weights, row_in_lane(mine, one),
                                             row_in_lane(mine, two), keys);
    }
  }
}

// Four keys are a batch, 8 lanes each: a lane has dims [8i, 8i + 8) of the first 64 and of the last
// 64, which rotate.
constexpr int batch_keys = 4;

struct key_part {
  device::words4 still, turning;
};
struct part_weights {
  float still[8], turning[8];
};

KVCTS_INLINE part_weights load_part_weights(const indexer_k_norm_rope_store_arguments& a,
                                            std::uint32_t eighth) {
  part_weights r;
  if (a.weight_is_f32) {
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      float(&to)[8] = half == 0 ? r.still : r.turning;
      const device::byte* from = a.weight + half * 256 + eighth * 32;
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const device::words4 four = device::load_16_bytes(from + i * 16);
        KVCTS_UNROLL for (int j = 0; j < 4; ++j) to[4 * i + j] = __uint_as_float(four.w[j]);
      }
    }
  } else {
    device::unpack<device::group>(device::load_16_bytes(a.weight + eighth * 16), r.still);
    device::unpack<device::group>(device::load_16_bytes(a.weight + 128 + eighth * 16), r.turning);
  }
  return r;
}

// [half][four dims][lane of the key]: the lanes read from different banks.
template <int KeyLanes>
struct shared_weights {
  float4 w[2][16 / KeyLanes][KeyLanes];
};
template <int KeyLanes>
KVCTS_INLINE void share_weights(const indexer_k_norm_rope_store_arguments& a,
                                shared_weights<KeyLanes>& to) {
  static_assert(block_warps == 4);  // a dim a thread
  const std::uint32_t dim = threadIdx.x;
  float w;
  if (a.weight_is_f32) {
    w = __ldg(reinterpret_cast<const float*>(a.weight) + dim);
  } else {
    w = __uint_as_float(
        std::uint32_t{__ldg(reinterpret_cast<const unsigned short*>(a.weight) + dim)} << 16);
  }
  constexpr std::uint32_t fours = 16 / KeyLanes;
  float4& four = to.w[dim / 64][dim / 4 % fours][dim % 64 / (4 * fours)];
  reinterpret_cast<float*>(&four)[dim % 4] = w;
}
KVCTS_INLINE part_weights load_part_weights(const shared_weights<8>& from, std::uint32_t eighth) {
  part_weights r;
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    float(&to)[8] = half == 0 ? r.still : r.turning;
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      const float4 w = from.w[half][i][eighth];
      to[4 * i] = w.x;
      to[4 * i + 1] = w.y;
      to[4 * i + 2] = w.z;
      to[4 * i + 3] = w.w;
    }
  }
  return r;
}

// Four squares in a lane, as the four dims of a lane of a warp that has the key alone.
KVCTS_INLINE float squares_of_four(const float* x) {
  return device::squares_in_lane<device::group, 4>({{x[0], x[1], x[2], x[3]}});
}

// bf16 of the norm, then bf16 of its rotation.
template <profile P>
KVCTS_INLINE key_part normed_and_rotated(const key_part& in, const part_weights& weights,
                                         const device::angles<device::group>& turned, float eps) {
  using G = device::group;
  float still[8];
  float turning[8];
  device::unpack<G>(in.still, still);
  device::unpack<G>(in.turning, turning);
  // Lane 2i + j of that warp has four dims of the first half here, lane 2i + j + 16 those of the
  // second: the tree's first and last step are in a lane.
  float sums[2];
  KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
    float sum = squares_of_four(still + 4 * j) + squares_of_four(turning + 4 * j);
    sum = sum + G::shuffle_xor<4>(sum);
    sum = sum + G::shuffle_xor<2>(sum);
    sums[j] = sum + G::shuffle_xor<1>(sum);
  }
  const float r = device::rsqrt<P>(__fmaf_rn(sums[0] + sums[1], 0x1p-7f, eps));
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) {
    still[j] = still[j] * r * weights.still[j];
    turning[j] = turning[j] * r * weights.turning[j];
  }
  return {device::rotated_by_zero(device::pack<G>(still)),
          device::rotated_bf16<G, device::rope_form::store>(device::pack<G>(turning), turned)};
}

KVCTS_INLINE void store_16_bytes(device::byte* to, const uint4& x) {
  if constexpr (streamed) {
    __stcs(reinterpret_cast<uint4*>(to), x);
  } else {
    *reinterpret_cast<uint4*>(to) = x;
  }
}

// All lanes take part.
template <profile P, bool Mxfp4>
KVCTS_INLINE void store_part(const indexer_k_norm_rope_store_arguments& a, std::uint32_t eighth,
                             std::int64_t slot, bool stored, const key_part& y) {
  using G = device::group;
  const device::record_place to = device::place_of_slot(a.cache, slot, Mxfp4 ? 64 : 128, 4);
  const std::uint32_t still = device::magnitudes(y.still);
  const std::uint32_t turning = device::magnitudes(y.turning);
  if constexpr (Mxfp4) {
    const std::uint32_t amax = device::largest_of_two<4>(still, turning, device::mxfp4_amax_floor);
    constexpr bool flushed = P == profile::nvidia;  // 2^-127 is 0 in one profile
    std::uint32_t scales[2];
    std::uint32_t codes[2];
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      scales[half] = device::mxfp4_scale<G>(half == 0 ? amax & 0xFFFFu : amax >> 16);
      const float factor = flushed ? __uint_as_float((254u - scales[half]) << 23)
                                   : device::mxfp4_factor<G>(scales[half]);
      codes[half] = G::encode_e2m1<flushed>(half == 0 ? y.still : y.turning, factor);
    }
    // Blocks 0 and 2 are in lanes 0..3, blocks 1 and 3 in lanes 4..7.
    const std::uint32_t mine = scales[0] | scales[1] << 16;
    const std::uint32_t word = mine | G::shuffle_xor<4>(mine) << 8;
    if constexpr (wide_stores) {
      const bool odd = (eighth & 1u) != 0;
      const std::uint32_t other = G::shuffle_xor<1>(odd ? codes[0] : codes[1]);
      if (!stored) return;
      device::store_8_bytes(to.data + (odd ? 28 : 0) + eighth * 4, odd ? other : codes[0],
                            odd ? codes[1] : other);
    } else {
      if (!stored) return;
      device::store_4_bytes(to.data + eighth * 4, codes[0]);
      device::store_4_bytes(to.data + 32 + eighth * 4, codes[1]);
    }
    if (eighth == 0) device::store_4_bytes(to.scales, word);
  } else {
    std::uint32_t amax =
        device::max2(device::max2(still, turning), device::key_amax_floor * 0x10001u);
    amax = device::max2(amax, G::shuffle_xor<1>(amax));
    amax = device::max2(amax, G::shuffle_xor<2>(amax));
    amax = device::max2(amax, G::shuffle_xor<4>(amax));
    amax = device::max2(amax, amax >> 16) & 0xFFFFu;
    const std::uint32_t scale = device::key_scale<G, false>(amax);
    const std::uint32_t factor =
        __byte_perm(__float_as_uint(device::key_factor<G>(scale)), 0, 0x3232);
    std::uint32_t lo[2];
    std::uint32_t hi[2];
    device::encode_e4m3_by(y.still, factor, lo[0], hi[0]);
    device::encode_e4m3_by(y.turning, factor, lo[1], hi[1]);
    if constexpr (wide_stores) {
      // Of two lanes the first stores 16 dims of the first half, the other one of the second.
      const bool odd = (eighth & 1u) != 0;
      const std::uint32_t other_lo = G::shuffle_xor<1>(odd ? lo[0] : lo[1]);
      const std::uint32_t other_hi = G::shuffle_xor<1>(odd ? hi[0] : hi[1]);
      if (!stored) return;
      const std::uint32_t piece = eighth / 2 + (odd ? 4 : 0);
      device::byte* to_piece =
          a.tiled ? to.data - (slot & 15) * 112 + piece * 256 : to.data + piece * 16;
      store_16_bytes(to_piece, odd ? make_uint4(other_lo, other_hi, lo[1], hi[1])
                                   : make_uint4(lo[0], hi[0], other_lo, other_hi));
      if (eighth == 0) device::store_4_bytes(to.scales, scale << 23);
      return;
    }
    if (!stored) return;
    device::byte* data = to.data + eighth * 8;
    std::int64_t next = 64;
    if (a.tiled) {
      // [page's tokens / 16, 8, 16 tokens, 16 bytes]: 16 bytes a token where a row has 128.
      data = to.data - (slot & 15) * 112 + eighth / 2 * 256 + eighth % 2 * 8;
      next = 1024;
    }
    device::store_8_bytes(data, lo[0], hi[0]);
    device::store_8_bytes(data + next, lo[1], hi[1]);
    if (eighth == 0) device::store_4_bytes(to.scales, scale << 23);
  }
}

// A warp does a batch of groups of `ratio` rows. (Two batches a warp were slower, for the registers
// that they take.)
template <profile P, bool Mxfp4>
__global__ void __launch_bounds__(32 * block_warps, variant == 0 ? 0 : 10)
    store_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  const std::uint32_t eighth = G::lane() % 8;
  const std::int64_t group =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32) * batch_keys +
      G::lane() / 8;
  part_weights weights;
  __shared__ shared_weights<8> of_block;
  if constexpr (variant == 0) {
    weights = load_part_weights(a, eighth);
  } else {
    share_weights(a, of_block);
  }
  // Where positions follow each other, only one of a group's rows is stored.
  for (int of_group = 0; of_group < a.at.ratio; ++of_group) {
    const std::int64_t row = group * a.at.ratio + of_group;
    const bool inside = row < a.at.rows;
    device::group_row at = {row, -1, 0};
    const bool stored = inside && device::load_group_row<G, true>(a.at, row, at);
    key_part in = {};
    // Without groups almost every row is stored: its load need not wait for its slot.
    if (a.at.ratio == 1 ? inside : stored) {
      const device::byte* from = a.k + row * a.k_row_stride + eighth * 16;
      in.still = device::load_16_bytes(from);
      in.turning = device::load_16_bytes(from + 128);
    }
    device::angles<G> turned = {};
    if (stored) {
      turned = device::load_angles_of_eighth(device::angles_of(a.table, at.position), eighth,
                                             a.table.is_f32);
    }
    if constexpr (variant != 0) {
      if (of_group == 0) __syncthreads();
    }
    if (!__any_sync(0xFFFFFFFFu, stored)) continue;
    if constexpr (variant != 0) weights = load_part_weights(of_block, eighth);
    const key_part y = normed_and_rotated<P>(in, weights, turned, a.eps);
    store_part<P, Mxfp4>(a, eighth, at.slot, stored, y);
  }
}

// --- Rows one by one (ratio 1), keys and angles by way of shared memory.

KVCTS_INLINE std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
KVCTS_INLINE device::words4 words_at(const void* shared) {
  const uint4 x = *static_cast<const uint4*>(shared);
  return {{x.x, x.y, x.z, x.w}};
}

// cp.async, batches of four keys as above. Each lane reads what it copied itself.
constexpr int batches = 2;

KVCTS_INLINE void copy_16_bytes(void* to, const device::byte* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
#endif
}
template <int Pending>
KVCTS_INLINE void commit_and_wait(bool commit) {
  if (commit) {
    asm volatile("cp.async.commit_group;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
  }
}

template <profile P, bool Mxfp4>
__global__ void __launch_bounds__(32 * block_warps, 12)
    copied_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  // [warp][batch][chunk][lane]: still, turning, cosines, sines.
  __shared__ uint4 stage[block_warps][batches][4][32];
  const std::uint32_t lane = G::lane();
  const std::uint32_t eighth = lane % 8;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + warp) * (batches * batch_keys) +
      lane / 8;
  std::int64_t slots[batches];
  std::int64_t positions[batches];
  KVCTS_UNROLL for (int b = 0; b < batches; ++b) {
    const std::int64_t row = first + b * batch_keys;
    slots[b] = -1;
    if (row < a.at.rows) {
      slots[b] = G::load_i64<true>(a.at.slots + row * 8);
      positions[b] = G::load_i64<true>(a.at.positions + row * 8);
      const device::byte* from = a.k + row * a.k_row_stride + eighth * 16;
      copy_16_bytes(&stage[warp][b][0][lane], from);
      copy_16_bytes(&stage[warp][b][1][lane], from + 128);
    }
  }
  KVCTS_UNROLL for (int b = 0; b < batches; ++b) {
    if (slots[b] >= 0 && a.table.is_f32) {
      const device::byte* from = device::angles_of(a.table, positions[b]) + eighth * 16;
      copy_16_bytes(&stage[warp][b][2][lane], from);
      copy_16_bytes(&stage[warp][b][3][lane], from + 128);
    }
    commit_and_wait<0>(true);  // the first group has the keys of all batches
  }
  __shared__ shared_weights<8> of_block;
  share_weights(a, of_block);
  __syncthreads();
  KVCTS_UNROLL for (int b = 0; b < batches; ++b) {
    const bool stored = slots[b] >= 0;
    if (b == 0) {
      commit_and_wait<batches - 1>(false);
    } else {
      commit_and_wait<0>(false);
    }
    if (!__any_sync(0xFFFFFFFFu, stored)) continue;
    const key_part in = {words_at(&stage[warp][b][0][lane]), words_at(&stage[warp][b][1][lane])};
    device::angles<G> turned = {};
    if (a.table.is_f32) {
      const device::words4 c = words_at(&stage[warp][b][2][lane]);
      const device::words4 s = words_at(&stage[warp][b][3][lane]);
      KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
        turned.c[i] = __uint_as_float(c.w[i]);
        turned.s[i] = __uint_as_float(s.w[i]);
      }
    } else if (stored) {
      turned =
          device::load_angles_of_eighth(device::angles_of(a.table, positions[b]), eighth, false);
    }
    const key_part y =
        normed_and_rotated<P>(in, load_part_weights(of_block, eighth), turned, a.eps);
    store_part<P, Mxfp4>(a, eighth, slots[b], stored, y);
  }
}

// Bulk copies: 8 keys are a batch, 4 lanes each. A lane has dims [16i, 16i + 16) of either half, so
// that it stores 16 bytes of either.
constexpr int bulk_keys = 8;
constexpr int stages = ring ? 2 : 1;
// 16 bytes more, so that the lanes of two keys read from different banks.
struct alignas(16) staged_key {
  device::byte key[256];
  device::byte angles[256];
  device::byte nothing[16];
};

// A phase ends when each key's first lane has arrived and all the bytes that they tell of have.
KVCTS_INLINE void start_barrier(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  if (device::group::lane() == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bulk_keys)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
#endif
  __syncwarp();
}
KVCTS_INLINE void expect_bytes(std::uint64_t* barrier, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
#endif
}
KVCTS_INLINE void arrive(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
}
KVCTS_INLINE void wait_for_phase(std::uint64_t* barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#else
  __syncwarp();
#endif
}
template <bool Once>
KVCTS_INLINE void copy_in_bulk(device::byte* to, const device::byte* from, std::uint32_t bytes,
                               std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  if constexpr (Once) {
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
        "[%1], %2, [%3], policy;\n"
        "}" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
  }
#else
  for (std::uint32_t i = 0; i < bytes; i += 16) {
    *reinterpret_cast<uint4*>(to + i) = __ldg(reinterpret_cast<const uint4*>(from + i));
  }
#endif
}

struct row_at {
  std::int64_t slot;  // -1: none
  std::int64_t position;
};
KVCTS_INLINE row_at load_row_at(const group_rows_view& at, std::int64_t row) {
  row_at r = {-1, 0};
  if (row < at.rows) {
    r.slot = device::group::load_i64<true>(at.slots + row * 8);
    r.position = device::group::load_i64<true>(at.positions + row * 8);
  }
  return r;
}

// The first lane of each key asks for its bytes: the key at once, the angles when their row is
// known.
KVCTS_INLINE void ask_for_key(const indexer_k_norm_rope_store_arguments& a, std::int64_t row,
                              staged_key& to, std::uint64_t* barrier) {
  if (device::group::lane() % 4 != 0 || row >= a.at.rows) return;
  expect_bytes(barrier, 256);
  copy_in_bulk<streamed>(to.key, a.k + row * a.k_row_stride, 256, barrier);
}
KVCTS_INLINE void ask_for_angles(const indexer_k_norm_rope_store_arguments& a, const row_at& at,
                                 staged_key& to, std::uint64_t* barrier) {
  if (device::group::lane() % 4 != 0) return;
  if (at.slot >= 0) {
    const std::uint32_t bytes = a.table.is_f32 ? 256 : 128;
    expect_bytes(barrier, bytes);
    copy_in_bulk<false>(to.angles, device::angles_of(a.table, at.position), bytes, barrier);
  }
  arrive(barrier);
}

template <profile P, bool Mxfp4>
KVCTS_INLINE void store_staged_key(const indexer_k_norm_rope_store_arguments& a,
                                   const shared_weights<4>& weights, const staged_key& from,
                                   std::int64_t slot) {
  using G = device::group;
  const std::uint32_t fourth = G::lane() % 4;
  const bool stored = slot >= 0;
  // [half][eight dims]
  device::words4 y[2][2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      y[half][i] = words_at(from.key + half * 128 + fourth * 32 + i * 16);
    }
  }
  // Lane u of a warp that has the key alone has dims [4u, 4u + 4): here [4i + u] of a half is in
  // lane i. Its tree's first step and its last two are in a lane.
  float sums[4];
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    float still[8];
    float turning[8];
    device::unpack<G>(y[0][i], still);
    device::unpack<G>(y[1][i], turning);
    KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
      float sum = squares_of_four(still + 4 * j) + squares_of_four(turning + 4 * j);
      sum = sum + G::shuffle_xor<2>(sum);
      sums[2 * i + j] = sum + G::shuffle_xor<1>(sum);
    }
  }
  const float sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  const float r = device::rsqrt<P>(__fmaf_rn(sum, 0x1p-7f, a.eps));
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      float x[8];
      device::unpack<G>(y[half][i], x);
      KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
        const float4 w = weights.w[half][2 * i + j][fourth];
        x[4 * j] = x[4 * j] * r * w.x;
        x[4 * j + 1] = x[4 * j + 1] * r * w.y;
        x[4 * j + 2] = x[4 * j + 2] * r * w.z;
        x[4 * j + 3] = x[4 * j + 3] * r * w.w;
      }
      y[half][i] = device::pack<G>(x);
    }
  }
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    device::angles<G> turned;
    if (a.table.is_f32) {
      const device::words4 c = words_at(from.angles + fourth * 32 + i * 16);
      const device::words4 s = words_at(from.angles + 128 + fourth * 32 + i * 16);
      KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
        turned.c[j] = __uint_as_float(c.w[j]);
        turned.s[j] = __uint_as_float(s.w[j]);
      }
    } else {
      const uint2 c = *reinterpret_cast<const uint2*>(from.angles + fourth * 16 + i * 8);
      const uint2 s = *reinterpret_cast<const uint2*>(from.angles + 64 + fourth * 16 + i * 8);
      turned.c[0] = device::bf16_even<G>(c.x);
      turned.c[1] = device::bf16_odd<G>(c.x);
      turned.c[2] = device::bf16_even<G>(c.y);
      turned.c[3] = device::bf16_odd<G>(c.y);
      turned.s[0] = device::bf16_even<G>(s.x);
      turned.s[1] = device::bf16_odd<G>(s.x);
      turned.s[2] = device::bf16_even<G>(s.y);
      turned.s[3] = device::bf16_odd<G>(s.y);
    }
    y[0][i] = device::rotated_by_zero(y[0][i]);
    y[1][i] = device::rotated_bf16<G, device::rope_form::store>(y[1][i], turned);
  }

  const std::uint32_t still =
      device::max2(device::magnitudes(y[0][0]), device::magnitudes(y[0][1]));
  const std::uint32_t turning =
      device::max2(device::magnitudes(y[1][0]), device::magnitudes(y[1][1]));
  const device::record_place to = device::place_of_slot(a.cache, slot, Mxfp4 ? 64 : 128, 4);
  if constexpr (Mxfp4) {
    const std::uint32_t amax = device::largest_of_two<2>(still, turning, device::mxfp4_amax_floor);
    constexpr bool flushed = P == profile::nvidia;  // 2^-127 is 0 in one profile
    std::uint32_t scales[2];
    std::uint32_t codes[2][2];
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      scales[half] = device::mxfp4_scale<G>(half == 0 ? amax & 0xFFFFu : amax >> 16);
      const float factor = flushed ? __uint_as_float((254u - scales[half]) << 23)
                                   : device::mxfp4_factor<G>(scales[half]);
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        codes[half][i] = G::encode_e2m1<flushed>(y[half][i], factor);
      }
    }
    // Blocks 0 and 2 are in lanes 0 and 1, blocks 1 and 3 in lanes 2 and 3.
    const std::uint32_t mine = scales[0] | scales[1] << 16;
    const std::uint32_t word = mine | G::shuffle_xor<2>(mine) << 8;
    // Of two lanes the first stores 32 dims of the first half, the other one of the second: a key's
    // bytes in one store.
    const bool odd = (fourth & 1u) != 0;
    const std::uint32_t other0 = G::shuffle_xor<1>(odd ? codes[0][0] : codes[1][0]);
    const std::uint32_t other1 = G::shuffle_xor<1>(odd ? codes[0][1] : codes[1][1]);
    if (!stored) return;
    store_16_bytes(to.data + (odd ? 32 : 0) + fourth / 2 * 16,
                   odd ? make_uint4(other0, other1, codes[1][0], codes[1][1])
                       : make_uint4(codes[0][0], codes[0][1], other0, other1));
    if (fourth == 0) device::store_4_bytes(to.scales, word);
  } else {
    std::uint32_t amax =
        device::max2(device::max2(still, turning), device::key_amax_floor * 0x10001u);
    amax = device::max2(amax, G::shuffle_xor<1>(amax));
    amax = device::max2(amax, G::shuffle_xor<2>(amax));
    amax = device::max2(amax, amax >> 16) & 0xFFFFu;
    const std::uint32_t scale = device::key_scale<G, false>(amax);
    const std::uint32_t factor =
        __byte_perm(__float_as_uint(device::key_factor<G>(scale)), 0, 0x3232);
    if (!stored) return;
    device::byte* data = to.data + fourth * 16;
    std::int64_t next = 64;
    if (a.tiled) {
      data = to.data - (slot & 15) * 112 + fourth * 256;
      next = 1024;
    }
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      uint4 x;
      device::encode_e4m3_by(y[half][0], factor, x.x, x.y);
      device::encode_e4m3_by(y[half][1], factor, x.z, x.w);
      store_16_bytes(data + half * next, x);
    }
    if (fourth == 0) device::store_4_bytes(to.scales, scale << 23);
  }
}

template <profile P, bool Mxfp4>
__global__ void __launch_bounds__(32 * block_warps, variant == 4 ? 10
                                                    : ring       ? 4
                                                                 : 8)
    bulk_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  __shared__ alignas(16) staged_key stage[block_warps][stages][bulk_keys];
  __shared__ shared_weights<4> weights;
  __shared__ std::uint64_t barriers[block_warps][stages];
  const std::uint32_t warp = threadIdx.x / 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (block_warps * bulk_keys);
  // The row of this lane, the same in the 4 lanes of a key.
  std::int64_t row =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + warp) * bulk_keys + G::lane() / 4;
  row_at at = load_row_at(a.at, row);
  row_at next = {-1, 0};
  if constexpr (ring) next = load_row_at(a.at, row + step);
  KVCTS_UNROLL for (int s = 0; s < stages; ++s) start_barrier(&barriers[warp][s]);
  const auto key_in = [&](int s) -> staged_key& { return stage[warp][s][G::lane() / 4]; };
  ask_for_key(a, row, key_in(0), &barriers[warp][0]);
  share_weights(a, weights);
  ask_for_angles(a, at, key_in(0), &barriers[warp][0]);
  __syncthreads();
  if constexpr (!ring) {
    if (!__any_sync(0xFFFFFFFFu, row < a.at.rows)) return;
    wait_for_phase(&barriers[warp][0], 0);
    store_staged_key<P, Mxfp4>(a, weights, key_in(0), at.slot);
  } else {
    std::uint32_t turn = 0;
    while (__any_sync(0xFFFFFFFFu, row < a.at.rows)) {
      const int s = static_cast<int>(turn % 2);
      const int other = 1 - s;
      // All lanes have read the other stage; __any_sync ordered it.
      ask_for_key(a, row + step, key_in(other), &barriers[warp][other]);
      ask_for_angles(a, next, key_in(other), &barriers[warp][other]);
      const row_at after = load_row_at(a.at, row + 2 * step);
      wait_for_phase(&barriers[warp][s], turn / 2 % 2);
      store_staged_key<P, Mxfp4>(a, weights, key_in(s), at.slot);
      at = next;
      next = after;
      row += step;
      ++turn;
      __syncwarp();
    }
    // Nothing may still be on its way into the shared memory: rows beyond the end asked for none.
  }
}

bool is_aligned(const indexer_k_norm_rope_store_arguments& a) {
  const int word = a.mxfp4 ? 4 : 8;
  return is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) && is_multiple(a.at.slots, 8) &&
         is_multiple(a.at.positions, 8) && is_multiple(a.table.start, 16) &&
         is_multiple(a.table.stride, 16) && is_multiple(a.weight, 16) &&
         is_multiple(a.cache.start, word) && is_multiple(a.cache.page_stride, word);
}

unsigned multiprocessors() {
  int device = 0;
  int count = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
             "number of multiprocessors");
  return static_cast<unsigned>(count);
}

template <profile P, bool Mxfp4>
void launch(const indexer_k_norm_rope_store_arguments& a, cudaStream_t stream) {
  const auto blocks_of = [&](std::int64_t rows_a_warp) {
    const std::int64_t rows_a_block = rows_a_warp * block_warps;
    return static_cast<unsigned>(
        std::min((a.at.rows + rows_a_block - 1) / rows_a_block, largest_grid));
  };
  constexpr auto name = "indexer_k_norm_rope_store";
  constexpr unsigned threads = 32 * block_warps;
  const int ratio = a.at.ratio;
  const bool wide_cache = is_multiple(a.cache.start, 16) && is_multiple(a.cache.page_stride, 16) &&
                          is_multiple(a.cache.block_size * (Mxfp4 ? 64 : 128), 16);
  if constexpr (staged || variant == 6) {
    if (is_aligned(a) && wide_cache && ratio == 1) {
      if constexpr (variant == 6) {
        launch_kernel(copied_kernel<P, Mxfp4>, blocks_of(batches * batch_keys), threads, stream, name, a);
      } else {
        unsigned blocks = blocks_of(bulk_keys);
        if (ring) blocks = std::min(blocks, 4U * multiprocessors());
        cuda_check(cudaFuncSetAttribute(bulk_kernel<P, Mxfp4>,
                                        cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared),
                   "shared memory");
        launch_kernel(bulk_kernel<P, Mxfp4>, blocks, threads, stream, name, a);
      }
      return;
    }
  }
  if (!is_aligned(a) || (wide_stores && !wide_cache)) {
    // Two live ones, where the positions follow each other.
    launch_kernel(store_unaligned_kernel<P, Mxfp4>, blocks_of(2 * ratio), threads, stream, name, a,
                  2 * ratio);
  } else {
    launch_kernel(store_kernel<P, Mxfp4>, blocks_of(batch_keys * ratio), threads, stream, name, a);
  }
}
template <profile P>
void launch(const indexer_k_norm_rope_store_arguments& a, cudaStream_t stream) {
  (a.mxfp4 ? launch<P, true> : launch<P, false>)(a, stream);
}

}  // namespace

void launch_indexer_k_norm_rope_store(const indexer_k_norm_rope_store_arguments& a, profile p,
                                      cudaStream_t stream) {
  if (a.at.rows == 0) return;
  (p == profile::nvidia ? launch<profile::nvidia> : launch<profile::ieee>)(a, stream);
}

}  // namespace kvcts
