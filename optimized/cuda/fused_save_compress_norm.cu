#include "optimized/cuda/rows.h"
#include "optimized/kernels/fused_save_compress_norm.h"
#include "optimized/warp/pages.h"

namespace kvcts {
namespace {

using G = device::group;
constexpr int block_warps = 4;  // a part of a row each, where a block does one row
constexpr int rows_in_flight = 2;

template <profile P, bool Aligned>
struct tokens_body {
  static KVCTS_INLINE void run(const fused_save_compress_norm_arguments& a, std::int64_t token) {
    device::compress_token<G, P, Aligned>(a, token);
  }
};

// The ring row of a live slot.
KVCTS_INLINE unsigned char* row_of_slot(const fused_save_compress_norm_arguments& a,
                                        std::int64_t slot) {
  const std::int64_t page = device::divided(slot, a.capacity);
  return device::ring_row(a, page, slot - page * a.capacity);
}
KVCTS_INLINE unsigned char* pointer_of_lane(unsigned char* p, int lane) {
  return reinterpret_cast<unsigned char*>(
      __shfl_sync(0xFFFFFFFFu, reinterpret_cast<unsigned long long>(p), lane));
}

// A warp's quarter of up to rows_in_flight raw rows, each with its place in a ring, or none.
template <bool Aligned>
struct kept_rows {
  unsigned char* to[rows_in_flight];
  G::words<4> quarter[rows_in_flight][2];

  KVCTS_INLINE void load(const fused_save_compress_norm_arguments& a, std::int64_t token,
                         unsigned char* to_of_lane, int lane, int warp) {
    KVCTS_UNROLL for (int i = 0; i < rows_in_flight; ++i) {
      to[i] = pointer_of_lane(to_of_lane, lane + i);
      if (to[i] == nullptr) continue;
      const unsigned char* from = a.kv_score + (token + i) * a.kv_score_stride + warp * 1024;
      KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
        quarter[i][j] = G::load_words<4, 32, Aligned>(from + j * 512, 0, 1);
      }
    }
  }
  KVCTS_INLINE void store(int warp) const {
    KVCTS_UNROLL for (int i = 0; i < rows_in_flight; ++i) {
      if (to[i] == nullptr) continue;
      KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
        G::store_words<4, 32, Aligned>(to[i] + warp * 1024 + j * 512, 0, 1, quarter[i][j]);
      }
    }
  }
};

// compress_request by a block. Rows of a ring are stored by the same threads in the tokens' order.
template <profile P, bool Aligned>
KVCTS_INLINE void compress_request_of_block(const fused_save_compress_norm_arguments& a,
                                            std::int64_t request, float* shared_sums) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(G::lane());
  const std::int64_t start = G::load_i32<Aligned>(a.query_starts + request * 4);
  const std::int64_t end = G::load_i32<Aligned>(a.query_starts + request * 4 + 4);
  const auto weight = device::load_weight_part<G, Aligned>(a, warp);
  if (start >= end || start >= a.tokens) return;
  const std::int64_t first_kept = end - a.capacity > start ? end - a.capacity : start;
  const std::int64_t kept_end = end < a.tokens ? end : a.tokens;
  // All loads that need no more than the request's bounds come before their first use.
  const std::int64_t first_slot = device::slot_of_token<G, Aligned>(a, start);
  const std::int64_t position = G::load_i64<Aligned>(a.positions + start * 8);
  const auto place_of_kept = [&](std::int64_t first) -> unsigned char* {
    const std::int64_t token = first + lane;
    if (token >= kept_end) return nullptr;
    const std::int64_t slot = device::slot_of_token<G, Aligned>(a, token);
    return slot < 0 ? nullptr : row_of_slot(a, slot);
  };
  unsigned char* place = place_of_kept(first_kept);
  if (first_slot < 0) return;
  kept_rows<Aligned> kept;
  kept.load(a, first_kept, place, 0, warp);
  if ((position & 1) == 1) {
    const std::int64_t page = device::divided(first_slot, a.capacity);
    const std::int64_t earlier = position - 1;
    const std::int64_t row = earlier - device::divided(earlier, a.capacity) * a.capacity;
    const auto x = device::pooled_part<G, P, Aligned>(device::ring_row(a, page, row),
                                                      a.kv_score + start * a.kv_score_stride, warp);
    const float sum = device::sum_over_lanes<G>(device::squares_in_lane<G, 4>(x));
    if (lane == 0) shared_sums[warp] = sum;
    __syncthreads();  // and all of the ring is read
    const float r = device::reciprocal_root_of_sum<G, P>(
        a, (shared_sums[0] + shared_sums[2]) + (shared_sums[1] + shared_sums[3]));
    device::store_latent_part<G, Aligned>(a, x, weight, r, start, warp);
  }
  kept.store(warp);
  for (std::int64_t at = rows_in_flight; first_kept + at < kept_end; at += rows_in_flight) {
    if (at % 32 == 0) place = place_of_kept(first_kept + at);
    kept.load(a, first_kept + at, place, static_cast<int>(at % 32), warp);
    kept.store(warp);
  }
}

// Ratio 2: a block a request, since these take longest, then a warp for each two tokens, of which
// one ends a group where positions follow each other.
template <profile P, bool Aligned>
__global__ void __launch_bounds__(32 * block_warps, P == profile::nvidia ? 8 : 1)
    groups_kernel(const __grid_constant__ fused_save_compress_norm_arguments a) {
  wait_for_earlier_kernel();
  __shared__ float shared_sums[block_warps];
  const std::int64_t block = blockIdx.x;
  if (block < a.requests) return compress_request_of_block<P, Aligned>(a, block, shared_sums);
  const std::int64_t first = ((block - a.requests) * block_warps + threadIdx.x / 32) * 2;
  bool due[2];
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    due[i] = first + i < a.tokens && device::ends_a_group_of_chunk<G, Aligned>(a, first + i);
  }
  unsigned waiting = (due[0] ? 1u : 0u) | (due[1] ? 2u : 0u);
  for (; waiting != 0; waiting &= waiting - 1) {
    device::compress_group<G, P, Aligned>(a, first + (waiting & 1u ? 0 : 1));
  }
}

bool is_aligned(const fused_save_compress_norm_arguments& a) {
  return is_multiple(a.kv_score, 16) && is_multiple(a.kv_score_stride, 16) &&
         is_multiple(a.positions, 8) && is_multiple(a.slot_mapping, 8) &&
         is_multiple(a.weight, 16) && is_multiple(a.latent, 8) && is_multiple(a.latent_stride, 8) &&
         (a.ratio == 1 || (is_multiple(a.query_starts, 4) && is_multiple(a.request_of_token, 4) &&
                           is_multiple(a.state, 16) && is_multiple(a.state_page_stride, 16) &&
                           is_multiple(a.state_row_stride, 16)));
}

template <profile P, bool Aligned>
void launch(const fused_save_compress_norm_arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_save_compress_norm";
  if (a.ratio == 1) {
    return launch_rows<tokens_body<P, Aligned>, block_warps>(a, a.tokens, stream, name);
  }
  // Bounds of requests and tokens are i32.
  const std::int64_t blocks = a.requests + (a.tokens + 2 * block_warps - 1) / (2 * block_warps);
  if (blocks == 0) return;
  launch_kernel(groups_kernel<P, Aligned>, static_cast<unsigned>(blocks), 32 * block_warps, stream,
                name, a);
}
template <profile P>
void launch(const fused_save_compress_norm_arguments& a, cudaStream_t stream) {
  (is_aligned(a) ? launch<P, true> : launch<P, false>)(a, stream);
}

}  // namespace

void launch_fused_save_compress_norm(const fused_save_compress_norm_arguments& a, profile p,
                                     cudaStream_t stream) {
  (p == profile::nvidia ? launch<profile::nvidia> : launch<profile::ieee>)(a, stream);
}

}  // namespace kvcts
