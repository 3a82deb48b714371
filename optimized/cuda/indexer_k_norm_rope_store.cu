#include <algorithm>

#include "optimized/cuda/finite_e2m1.h"
#include "optimized/cuda/launch.h"
#include "optimized/cuda/packed_bf16.h"
#include "optimized/cuda/streams.h"
#include "optimized/kernels/indexer_k_norm_rope_store.h"

namespace kvcts {
namespace {

constexpr int block_warps = 4;
// Blocks that a multiprocessor has registers for; 8 and 12 are slower by a hundredth.
constexpr int resident_blocks = 10;

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
// 64, which rotate. Short rows: the instructions of norm, rotation and codes limit it, so that
// offsets have 32 bits (is_small).
constexpr std::uint32_t batch_keys = 4;
constexpr std::uint32_t all_lanes = 0xFFFFFFFFu;

struct key_part {
  device::words4 still, turning;
};

// --- A batch's weights, positions and loads.

// A thread loads the weight of a dim; nothing waits for it before `number_of`.
KVCTS_INLINE std::uint32_t load_weight(const indexer_k_norm_rope_store_arguments& a) {
  static_assert(block_warps == 4);
  const std::uint32_t dim = threadIdx.x;
  if (a.weight_is_f32)
    return device::load_global(reinterpret_cast<const std::uint32_t*>(a.weight) + dim);
  return device::load_global(reinterpret_cast<const std::uint16_t*>(a.weight) + dim);
}
KVCTS_INLINE float number_of(std::uint32_t weight, bool is_f32) {
  return __uint_as_float(weight << (is_f32 ? 0 : 16));
}
// By way of shared memory they take no registers while the warp waits for its key.
struct alignas(16) shared_weights {
  float w[128];
};
KVCTS_INLINE void read_weights(const shared_weights& from, std::uint32_t dim, float (&to)[8]) {
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    const float4 w = *reinterpret_cast<const float4*>(from.w + dim + 4 * i);
    to[4 * i] = w.x;
    to[4 * i + 1] = w.y;
    to[4 * i + 2] = w.z;
    to[4 * i + 3] = w.w;
  }
}

KVCTS_INLINE std::int64_t load_i64_in_order(const device::byte* from) {
  const uint2 x = device::load_in_order(reinterpret_cast<const uint2*>(from));
  return static_cast<std::int64_t>(x.x | std::uint64_t{x.y} << 32);
}

struct stored_row {
  std::int64_t slot;
  std::int64_t position;  // of the group's first token
  bool stored;
};
template <bool Groups>
KVCTS_INLINE stored_row load_stored_row(const group_rows_view& at, std::uint32_t row) {
  const std::uint64_t offset = std::uint64_t{row} * 8;
  const std::int64_t slot = load_i64_in_order(at.slots + offset);
  const std::int64_t position = load_i64_in_order(at.positions + offset);
  if constexpr (Groups) return {slot, position - 1, slot >= 0 && position % 2 == 1};
  return {slot, position, slot >= 0};
}

KVCTS_INLINE key_part load_key(const device::byte* key, std::uint32_t eighth) {
  const auto* from = reinterpret_cast<const uint4*>(key) + eighth;
  return {device::words_of(device::load_in_order(from)),
          device::words_of(device::load_in_order(from + device::row_lanes))};
}

// --- Norm and rotation.

// Four squares in a lane, as the four dims of a lane of a warp that has the key alone.
KVCTS_INLINE float squares_of_four(const float* x) {
  return device::squares_in_lane<device::group, 4>({{x[0], x[1], x[2], x[3]}});
}

// bf16 of the norm.
template <profile P>
KVCTS_INLINE key_part normed(const key_part& in, const shared_weights& weights,
                             std::uint32_t eighth, float eps) {
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
  float w[8];
  read_weights(weights, eighth * 8, w);
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) still[j] = still[j] * r * w[j];
  read_weights(weights, 64 + eighth * 8, w);
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) turning[j] = turning[j] * r * w[j];
  return {device::pack<G>(still), device::pack<G>(turning)};
}

// --- Codes, with fewer instructions in a batch in which no number is an infinity, a NaN, or a zero
// that rotation by zero may give another sign.

// Of magnitudes, in each half of a word.
struct extremes {
  std::uint32_t still, turning;  // the largest, or NaN
  std::uint32_t least_still;
};
KVCTS_INLINE extremes extremes_of(const key_part& y) {
  extremes r = {device::abs2(y.still.w[0]), device::abs2(y.turning.w[0]),
                device::abs2(y.still.w[0])};
  KVCTS_UNROLL for (int j = 1; j < 4; ++j) {
    r.still = device::max2_or_nan(r.still, device::abs2(y.still.w[j]));
    r.turning = device::max2_or_nan(r.turning, device::abs2(y.turning.w[j]));
    r.least_still = device::min2(r.least_still, device::abs2(y.still.w[j]));
  }
  return r;
}
// A zero less 1 has the top bit.
KVCTS_INLINE bool has_rare_numbers(const extremes& of) {
  const std::uint32_t largest = device::max2_or_nan(of.still, of.turning);
  return (device::not_finite(largest) | ((of.least_still - 0x00010001u) & 0x80008000u)) != 0;
}

struct mxfp4_part {
  std::uint32_t codes[2];
  std::uint32_t scales;  // bytes 0 and 2: of the block in either half
};
KVCTS_INLINE mxfp4_part finite_mxfp4(const key_part& y, const extremes& of) {
  const std::uint32_t amax =
      device::largest_of_two<4>(of.still, of.turning, device::mxfp4_amax_floor);
  const std::uint32_t fields = device::mxfp4_fields(amax);
  const std::uint32_t factors = device::mxfp4_factors(fields);
  return {{device::encode_finite_e2m1_by(y.still, device::low_twice(factors)),
           device::encode_finite_e2m1_by(y.turning, device::high_twice(factors))},
          device::mxfp4_scale_bytes(fields)};
}
template <profile P>
KVCTS_INLINE mxfp4_part any_mxfp4(const key_part& y) {
  using G = device::group;
  const std::uint32_t amax = device::largest_of_two<4>(
      device::magnitudes(y.still), device::magnitudes(y.turning), device::mxfp4_amax_floor);
  constexpr bool flushed = P == profile::nvidia;  // 2^-127 is 0 in one profile
  mxfp4_part r = {};
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    const std::uint32_t scale = device::mxfp4_scale<G>(half == 0 ? amax & 0xFFFFu : amax >> 16);
    const float factor =
        flushed ? __uint_as_float((254u - scale) << 23) : device::mxfp4_factor<G>(scale);
    r.codes[half] = G::encode_e2m1<flushed>(half == 0 ? y.still : y.turning, factor);
    r.scales |= scale << (16 * half);
  }
  return r;
}

struct e4m3_part {
  uint2 codes[2];
  std::uint32_t scale;  // f32
};
// Finite numbers need no clamp: the scale keeps them up to 448.
template <bool Finite>
KVCTS_INLINE e4m3_part e4m3_of(const key_part& y, std::uint32_t still, std::uint32_t turning) {
  const std::uint32_t amax =
      device::max2(device::max2(still, turning), device::key_amax_floor * 0x10001u);
  const device::e4m3_scale scale = device::e4m3_scale_of(device::largest_of_row(amax));
  return {{device::e4m3_codes<!Finite>(y.still, scale.factor),
           device::e4m3_codes<!Finite>(y.turning, scale.factor)},
          scale.biased << 23};
}

// --- Stores.

// Streamed: nothing reads the codes soon.
template <class Words>
KVCTS_INLINE void store(device::byte* to, const Words& x) {
  __stcs(reinterpret_cast<Words*>(to), x);
}

struct key_place {
  device::byte* page;
  std::uint32_t token;
  std::uint32_t tokens;  // a page
};
KVCTS_INLINE key_place place_of_key(const page_view& pages, std::int64_t slot) {
  const std::int64_t page = device::page_of_slot(pages, slot);
  const auto tokens = static_cast<std::uint32_t>(pages.block_size);
  return {pages.start + page * static_cast<std::uint32_t>(pages.page_stride),
          static_cast<std::uint32_t>(slot) - static_cast<std::uint32_t>(page) * tokens, tokens};
}
template <std::uint32_t DataBytes>
KVCTS_INLINE device::byte* scales_of(const key_place& at) {
  const std::uint32_t words = at.tokens * (DataBytes / 4) + at.token;
  return at.page + std::uint64_t{words} * 4;
}

KVCTS_INLINE void store_mxfp4(const page_view& pages, std::int64_t slot, std::uint32_t eighth,
                              bool stored, const mxfp4_part& x) {
  // Blocks 0 and 2 are in lanes 0..3, blocks 1 and 3 in lanes 4..7.
  const std::uint32_t others = device::group::shuffle_xor<4>(x.scales);
  if (!stored) return;
  const key_place at = place_of_key(pages, slot);
  device::byte* data = at.page + (at.token * 64 + eighth * 4);
  store(data, x.codes[0]);
  store(data + 32, x.codes[1]);
  if (eighth == 0) store(scales_of<64>(at), __byte_perm(x.scales, others, 0x6240));
}
KVCTS_INLINE void store_e4m3(const page_view& pages, bool tiled, std::int64_t slot,
                             std::uint32_t eighth, bool stored, const e4m3_part& x) {
  if (!stored) return;
  const key_place at = place_of_key(pages, slot);
  std::uint32_t data = at.token * 128 + eighth * 8;
  std::uint32_t next = 64;
  if (tiled) {
    // [page's tokens / 16, 8, 16 tokens, 16 bytes]: 16 bytes a token where a row has 128.
    data = at.token * 128 - (static_cast<std::uint32_t>(slot) & 15u) * 112 + eighth / 2 * 256 +
           eighth % 2 * 8;
    next = 1024;
  }
  device::byte* to = at.page + data;
  store(to, x.codes[0]);
  store(to + next, x.codes[1]);
  if (eighth == 0) store(scales_of<128>(at), x.scale);
}

// --- The kernel: a warp does a batch of rows, or of groups of two rows. (Two batches a warp, four
// lanes a key, keys by way of bulk copies, and lanes that store 16 bytes were slower.)

// All lanes take part.
template <profile P, bool Mxfp4>
KVCTS_INLINE void store_part(const indexer_k_norm_rope_store_arguments& a, std::uint32_t eighth,
                             std::int64_t slot, bool stored, key_part y) {
  const extremes of = extremes_of(y);
  const bool rare = __any_sync(all_lanes, stored && has_rare_numbers(of));
  if (rare) y.still = device::rotated_by_zero(y.still);
  if constexpr (Mxfp4) {
    const mxfp4_part x = rare ? any_mxfp4<P>(y) : finite_mxfp4(y, of);
    store_mxfp4(a.cache, slot, eighth, stored, x);
  } else {
    const e4m3_part x =
        rare ? e4m3_of<false>(y, device::magnitudes(y.still), device::magnitudes(y.turning))
             : e4m3_of<true>(y, of.still, of.turning);
    store_e4m3(a.cache, a.tiled, slot, eighth, stored, x);
  }
}

template <profile P, bool Mxfp4, bool Groups>
__global__ void __launch_bounds__(32 * block_warps, resident_blocks)
    store_kernel(const __grid_constant__ indexer_k_norm_rope_store_arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  __shared__ shared_weights weights;
  const std::uint32_t eighth = device::lane_in_row();
  const std::uint32_t group =
      blockIdx.x * (block_warps * batch_keys) + threadIdx.x / device::row_lanes;
  const auto rows = static_cast<std::uint32_t>(a.at.rows);
  const std::uint32_t weight = load_weight(a);
  // Where positions follow each other, only one of a group's rows is stored.
  constexpr std::uint32_t group_rows = Groups ? 2 : 1;
#pragma unroll 1
  for (std::uint32_t of_group = 0; of_group < group_rows; ++of_group) {
    const std::uint32_t first = group * group_rows + of_group;
    const std::uint32_t row = first < rows ? first : rows - 1;
    const device::byte* key = a.k + std::uint64_t{row} * static_cast<std::uint32_t>(a.k_row_stride);
    key_part in = {};
    // Without groups almost every row is stored: its load need not wait for its slot.
    if constexpr (!Groups) {
      in = load_key(key, eighth);
      __syncwarp();  // the compiler moves no load across: slots first would delay keys
    }
    const stored_row at = load_stored_row<Groups>(a.at, row);
    const bool stored = at.stored && first < rows;
    if (Groups && stored) in = load_key(key, eighth);
    // The barrier also keeps what waits for positions behind the loads of keys.
    if (of_group == 0) {
      weights.w[threadIdx.x] = number_of(weight, a.weight_is_f32);
      __syncthreads();
    }
    // Other rows turn by anything that can be read.
    const device::byte* angles_row =
        stored ? a.table.start + at.position * static_cast<std::uint32_t>(a.table.stride) : key;
    const auto angles = device::load_angles_of_row(angles_row, a.table.is_f32);
    if (!__any_sync(all_lanes, stored)) continue;
    key_part y = normed<P>(in, weights, eighth, a.eps);
    y.turning = device::rotated_bf16<G, device::rope_form::store>(y.turning, angles);
    store_part<P, Mxfp4>(a, eighth, at.slot, stored, y);
  }
}

bool has_32_bits(std::int64_t x) { return x >= 0 && x <= 0xFFFFFFFF; }

bool is_aligned(const indexer_k_norm_rope_store_arguments& a) {
  const int word = a.mxfp4 ? 4 : 8;
  return is_multiple(a.k, 16) && is_multiple(a.k_row_stride, 16) && is_multiple(a.at.slots, 8) &&
         is_multiple(a.at.positions, 8) && is_multiple(a.table.start, 16) &&
         is_multiple(a.table.stride, 16) && is_multiple(a.weight, 16) &&
         is_multiple(a.cache.start, word) && is_multiple(a.cache.page_stride, word);
}
// Counts and strides that store_kernel computes with in 32 bits; rows up to a block past the end.
bool is_small(const indexer_k_norm_rope_store_arguments& a) {
  return a.at.rows <= 0x7FFFFFFF && has_32_bits(a.k_row_stride) && has_32_bits(a.table.stride) &&
         has_32_bits(a.cache.page_stride) && has_32_bits(a.cache.block_size * 132);
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
  if (!is_aligned(a) || !is_small(a)) {
    // Two live ones, where the positions follow each other.
    launch_kernel(store_unaligned_kernel<P, Mxfp4>, blocks_of(2 * ratio), threads, stream, name, a,
                  2 * ratio);
  } else {
    launch_kernel(ratio == 1 ? store_kernel<P, Mxfp4, false> : store_kernel<P, Mxfp4, true>,
                  blocks_of(batch_keys * ratio), threads, stream, name, a);
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
