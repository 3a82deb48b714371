#include <algorithm>

#include "optimized/cuda/launch.h"
#include "optimized/cuda/packed_bf16.h"
#include "optimized/kernels/indexer_k_norm_rope_store.h"

namespace kvcts {
namespace {

constexpr int block_warps = 4;

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
    if (!stored) return;
    device::store_4_bytes(to.data + eighth * 4, codes[0]);
    device::store_4_bytes(to.data + 32 + eighth * 4, codes[1]);
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
__global__ void __launch_bounds__(32 * block_warps)
    store_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  const std::uint32_t eighth = G::lane() % 8;
  const std::int64_t group =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32) * batch_keys +
      G::lane() / 8;
  const part_weights weights = load_part_weights(a, eighth);
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
    if (!__any_sync(0xFFFFFFFFu, stored)) continue;
    const key_part y = normed_and_rotated<P>(in, weights, turned, a.eps);
    store_part<P, Mxfp4>(a, eighth, at.slot, stored, y);
  }
}

bool is_aligned(const indexer_k_norm_rope_store_arguments& a) {
  const int word = a.mxfp4 ? 4 : 8;
  return is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) && is_multiple(a.at.slots, 8) &&
         is_multiple(a.at.positions, 8) && is_multiple(a.table.start, 16) &&
         is_multiple(a.table.stride, 16) && is_multiple(a.weight, 16) &&
         is_multiple(a.cache.start, word) && is_multiple(a.cache.page_stride, word);
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
  if (!is_aligned(a)) {
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
