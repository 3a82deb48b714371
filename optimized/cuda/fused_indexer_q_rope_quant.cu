#include "optimized/cuda/bulk.h"
#include "optimized/cuda/finite_e2m1.h"
#include "optimized/cuda/heads.h"
#include "optimized/cuda/query_pairs.h"
#include "optimized/kernels/fused_indexer_q_rope_quant.h"

#ifndef KVCTS_VARIANT
#define KVCTS_VARIANT 0
#endif

namespace kvcts {
namespace {

// Usual heads at aligned addresses, 8 lanes a head: a lane has 8 dims of each half of it. Quads:
// four heads each, in flight a warp.
template <query_codes Form, int Quads>
struct aligned_body {
  static_assert(Form != query_codes::e4m3fnuz && Quads <= 4);
  static constexpr bool fp4 = Form == query_codes::mxfp4;
  static constexpr std::int64_t tokens_a_warp = 1;
  static constexpr std::int64_t heads_a_warp = 4 * Quads;
  static constexpr int blocks_at_once = Quads > 2 ? 3 : 5;  // of 8 warps
  using G = device::group;

  // A quad's codes of a lane, and the scales: fp8 the head's byte, MXFP4 the head's word.
  struct result {
    uint2 low, high;  // MXFP4: x alone
    std::uint32_t scales;
  };
  static KVCTS_INLINE result quantize(const G::bf16x8& low, const G::bf16x8& high) {
    using namespace device;
    result r;
    if constexpr (fp4) {
      const std::uint32_t amax_low = mxfp4_amax_or_nan(low);
      const std::uint32_t amax_high = mxfp4_amax_or_nan(high);
      const bool finite = is_number(amax_low) && is_number(amax_high);
      // The first four lanes of a head have its scales 0 and 2, the others 1 and 3.
      std::uint32_t own;
      if (__all_sync(0xFFFFFFFFu, finite)) {
        const std::uint32_t fields_low = mxfp4_fields(amax_low);
        const std::uint32_t fields_high = mxfp4_fields(amax_high);
        r.low.x = encode_finite_e2m1(low, fields_low);
        r.high.x = encode_finite_e2m1(high, fields_high);
        own = mxfp4_scale_bytes(fields_low, fields_high);
      } else {
        const std::uint32_t scale_low = mxfp4_scale<G>(G::amax<4>(low, mxfp4_amax_floor));
        const std::uint32_t scale_high = mxfp4_scale<G>(G::amax<4>(high, mxfp4_amax_floor));
        r.low.x = G::encode_e2m1(low, mxfp4_factor<G>(scale_low));
        r.high.x = G::encode_e2m1(high, mxfp4_factor<G>(scale_high));
        own = scale_low | (scale_high << 16);
      }
      r.scales = own | (G::shuffle_xor<4>(own) << 8);
    } else {
      const std::uint32_t m = larger_halves(high, larger_halves(low, key_amax_floor * 0x10001u));
      const e4m3_scale scale = e4m3_scale_of(largest_of_row(m));
      r.low = e4m3_codes<false>(low, scale.factor);
      r.high = e4m3_codes<false>(high, scale.factor);
      r.scales = scale.biased;
    }
    return r;
  }

  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using namespace device;
    const std::uint32_t lane = lane_in_row();
    const std::uint32_t row = row_in_warp();
    const std::int64_t left = a.heads - head - row;  // heads from the row's first on
    const auto present = [&](std::int64_t quad) { return 4 * quad < left; };
    // An absent head reads the last one.
    const auto head_of = [&](std::int64_t quad) {
      return present(quad) ? head + row + 4 * quad : a.heads - 1;
    };
    G::bf16x8 low[Quads];
    G::bf16x8 high[Quads];
    KVCTS_UNROLL for (int q = 0; q < Quads; ++q) {
      const unsigned char* from = query_head(a, token, head_of(q)) + lane * 16;
      low[q] = load_once<true>(from);
      high[q] = load_once<true>(from + 128);
    }
    // Lane q of a row has the scales and the weight of the row's head of quad q.
    const unsigned char* weights = a.weights + token * a.weights_token_stride;
    const std::int64_t own = head_of(lane % Quads);
    const std::uint32_t loaded =
        a.weights_are_f32 ? load_in_order(reinterpret_cast<const std::uint32_t*>(weights) + own)
                          : load_in_order(reinterpret_cast<const std::uint16_t*>(weights) + own);
    const std::int64_t position =
        load_after_all(reinterpret_cast<const std::int64_t*>(a.positions) + token);
    const angles<G> turned = load_angles_of_row(angles_of(a.table, position), a.table.is_f32);

    const std::int64_t out = token * a.heads + head + row;
    constexpr int lane_bytes = fp4 ? 4 : 8;
    unsigned char* codes = a.codes + out * (16 * lane_bytes) + lane * lane_bytes;
    std::uint32_t scales = 0;
    KVCTS_UNROLL for (int q = 0; q < Quads; ++q) {
      const result r = quantize(low[q], rotated_bf16<G, rope_form::query>(high[q], turned));
      unsigned char* to = codes + q * 4 * (16 * lane_bytes);
      if (present(q)) {
        if constexpr (fp4) {
          store_codes(to, r.low.x);
          store_codes(to + 32, r.high.x);
        } else {
          store_codes(to, r.low);
          store_codes(to + 64, r.high);
        }
      }
      scales = lane == q ? r.scales : scales;
    }
    if (lane >= Quads || !present(lane)) return;
    const std::int64_t own_out = out + 4 * lane;
    const std::uint32_t weight = a.weights_are_f32 ? loaded : loaded << 16;
    if constexpr (fp4) {
      reinterpret_cast<std::uint32_t*>(a.scales)[own_out] = scales;
      const float w = G::as_f32(weight) * a.softmax_scale * a.head_scale;
      if (a.weights_out_are_f32) {
        reinterpret_cast<float*>(a.weights_out)[own_out] = canonical<G>(w);
      } else {
        reinterpret_cast<std::uint16_t*>(a.weights_out)[own_out] =
            static_cast<std::uint16_t>(bf16_code<G>(w));
      }
    } else {
      reinterpret_cast<std::uint32_t*>(a.weights_out)[own_out] =
          folded_weight<G>(a, weight, scales);
    }
  }
};

// aligned_body with the scales of two quads a word.
template <query_codes Form, int Quads, int Blocks>
struct paired_body {
  static_assert(Form != query_codes::e4m3fnuz && Quads <= 4 && Quads % 2 == 0);
  static constexpr bool fp4 = Form == query_codes::mxfp4;
  static constexpr std::int64_t tokens_a_warp = 1;
  static constexpr std::int64_t heads_a_warp = 4 * Quads;
  static constexpr int blocks_at_once = Blocks;
  using G = device::group;

  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using namespace device;
    const std::uint32_t lane = lane_in_row();
    const std::uint32_t row = row_in_warp();
    // Quads that have a head of this row; an absent one reads the last head.
    const std::int64_t left = a.heads - head - row;
    const int present = static_cast<int>(left <= 0           ? 0
                                         : left >= 4 * Quads ? Quads
                                                             : (left + 3) / 4);
    const unsigned char* token_q = query_head(a, token, 0);
    const auto head_of = [&](int quad) {
      return quad < present ? head + row + 4 * quad : a.heads - 1;
    };
    G::bf16x8 low[Quads / 2][2];
    G::bf16x8 high[Quads / 2][2];
    KVCTS_UNROLL for (int q = 0; q < Quads; ++q) {
      const unsigned char* from = token_q + head_of(q) * a.q_head_stride + lane * 16;
      low[q / 2][q % 2] = load_once<true>(from);
      high[q / 2][q % 2] = load_once<true>(from + 128);
    }
    const std::uint32_t weight = load_weight(a, token, head_of(static_cast<int>(lane % Quads)));
    const std::int64_t position =
        load_after_all(reinterpret_cast<const std::int64_t*>(a.positions) + token);
    const angles<G> turned = load_angles_of_row(angles_of(a.table, position), a.table.is_f32);

    const std::int64_t out = token * a.heads + head + row;
    constexpr int lane_bytes = fp4 ? 4 : 8;
    unsigned char* codes =
        a.codes + out * (16 * lane_bytes) +
        (KVCTS_VARIANT == 1 ? lane * lane_bytes : paired_codes_at<16 * lane_bytes>());
    gathered_scales<fp4> scales;
    KVCTS_UNROLL for (int p = 0; p < Quads / 2; ++p) {
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        high[p][i] = rotated_bf16<G, rope_form::query>(high[p][i], turned);
      }
      const pair_codes<fp4> r = quantize_pair<fp4>(low[p], high[p]);
      decltype(paired_codes(r.low[0], r.high[0])) words[2];
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) words[i] = paired_codes(r.low[i], r.high[i]);
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const int q = 2 * p + i;
        if (q >= present) continue;
        unsigned char* to = codes + q * 4 * (16 * lane_bytes);
        if constexpr (KVCTS_VARIANT == 1) {
          store_codes(to, r.low[i]);
          store_codes(to + 8 * lane_bytes, r.high[i]);
        } else if constexpr (KVCTS_VARIANT == 7) {
          store_codes_streamed(to, words[i]);
        } else {
          store_codes(to, words[i]);
        }
      }
      scales.add(p, r);
    }
    const std::uint32_t own = scales.own();
    if (static_cast<int>(lane) >= present) return;
    store_scale_and_weight<fp4>(a, out + 4 * lane, weight, own);
  }
};

// Heads that lie one behind the other come by bulk copies, a ring of stages ahead of the warps that
// turn them into codes; a warp more fills it. A stage is the heads of a token, at most a block's
// share of them, and the token's row of the table.
struct ring_form {
  int quads;  // a warp
  int warps;
  int stages;
  int blocks;  // at once
  bool bulk_stores;
  bool evict_first;
};
template <query_codes Form>
constexpr ring_form ring() {
  switch (KVCTS_VARIANT) {
    case 4:
      return {2, 8, 5, 2, true, false};
    case 5:
      return {4, 4, 3, 4, false, false};
    case 6:
      return {2, 8, 4, 3, false, true};
    default:
      return {2, 8, 6, 2, false, false};
  }
}

constexpr int head_bytes = 256;
template <query_codes Form>
struct ring_shape {
  static constexpr ring_form form = ring<Form>();
  static constexpr int warp_heads = 4 * form.quads;
  static constexpr int heads = warp_heads * form.warps;  // a block
  static constexpr int angles_at = heads * head_bytes;
  static constexpr int stage_bytes = angles_at + 256;
  static constexpr int code_bytes = Form == query_codes::mxfp4 ? 64 : 128;  // a head
  // Two buffers of codes a warp.
  static constexpr int codes_at = form.stages * stage_bytes;
  static constexpr int warp_code_bytes = form.bulk_stores ? warp_heads * code_bytes : 0;
  static constexpr int shared_bytes = codes_at + 2 * form.warps * warp_code_bytes;
  static constexpr int threads = 32 * (form.warps + 1);
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
template <query_codes Form>
__device__ __forceinline__ void fill_ring(const fused_indexer_q_rope_quant_arguments& a,
                                          std::int64_t head, unsigned char* stages,
                                          device::phase_barrier* full,
                                          device::phase_barrier* empty) {
  using shape = ring_shape<Form>;
  using namespace device;
  const auto* positions = reinterpret_cast<const long long*>(a.positions);
  const std::uint32_t lane = group::lane();
  const std::int64_t left = a.heads - head;
  const auto q_bytes =
      static_cast<std::uint32_t>(left < shape::heads ? left : shape::heads) * head_bytes;
  const std::uint32_t angle_bytes = a.table.is_f32 ? 256 : 128;
  std::uint64_t policy = 0;
  if constexpr (shape::form.evict_first) policy = evict_first_policy();
  // Lane l has the position of the l-th token from here.
  const std::int64_t step = gridDim.x;
  const auto position_of = [&](std::int64_t first) {
    const std::int64_t token = first + lane * step;
    return token < a.tokens ? __ldg(positions + token) : 0;
  };
  int stage = 0;
  std::uint32_t parity = 1;
  std::int64_t first = blockIdx.x;
  long long here = position_of(first);
  while (first < a.tokens) {
    const long long next = position_of(first + 32 * step);
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      const std::int64_t token = first + i * step;
      if (token >= a.tokens) return;
      const long long position = __shfl_sync(0xFFFFFFFFu, here, i);
      if (lane == 0) {
        unsigned char* to = stages + stage * shape::stage_bytes;
        empty[stage].wait(parity);
        full[stage].arrive_expecting(q_bytes + angle_bytes);
        if constexpr (shape::form.evict_first) {
          bulk_load(to, query_head(a, token, head), q_bytes, full[stage], policy);
        } else {
          bulk_load(to, query_head(a, token, head), q_bytes, full[stage]);
        }
        bulk_load(to + shape::angles_at, angles_of(a.table, position), angle_bytes, full[stage]);
      }
      if (++stage == shape::form.stages) {
        stage = 0;
        parity ^= 1u;
      }
    }
    first += 32 * step;
    here = next;
  }
}

__device__ __forceinline__ device::group::bf16x8 shared_16_bytes(const unsigned char* from) {
  const uint4 x = *reinterpret_cast<const uint4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}
__device__ __forceinline__ device::angles<device::group> shared_angles(const unsigned char* row,
                                                                       bool is_f32) {
  using namespace device;
  using G = group;
  const std::uint32_t lane = lane_in_row();
  if (is_f32) {
    const float4 c = reinterpret_cast<const float4*>(row)[lane];
    const float4 s = reinterpret_cast<const float4*>(row)[row_lanes + lane];
    return {{c.x, c.y, c.z, c.w}, {s.x, s.y, s.z, s.w}};
  }
  const uint2 c = reinterpret_cast<const uint2*>(row)[lane];
  const uint2 s = reinterpret_cast<const uint2*>(row)[row_lanes + lane];
  return {{bf16_even<G>(c.x), bf16_odd<G>(c.x), bf16_even<G>(c.y), bf16_odd<G>(c.y)},
          {bf16_even<G>(s.x), bf16_odd<G>(s.x), bf16_even<G>(s.y), bf16_odd<G>(s.y)}};
}

template <query_codes Form>
__device__ __forceinline__ void quantize_ring(const fused_indexer_q_rope_quant_arguments& a,
                                              std::int64_t head, int warp, unsigned char* stages,
                                              device::phase_barrier* full,
                                              device::phase_barrier* empty) {
  using shape = ring_shape<Form>;
  using namespace device;
  using G = group;
  constexpr bool fp4 = Form == query_codes::mxfp4;
  constexpr int quads = shape::form.quads;
  constexpr bool bulk_stores = shape::form.bulk_stores;
  const std::uint32_t codes_at = paired_codes_at<shape::code_bytes>();
  const std::uint32_t lane = lane_in_row();
  const std::uint32_t row = row_in_warp();
  const std::int64_t warp_head = head + warp * shape::warp_heads;
  const std::int64_t left = a.heads - warp_head;  // heads from the warp's first on
  const std::int64_t row_left = left - row;
  // Quads that have a head of this row. What absent ones read is stale, and not stored.
  const int present = static_cast<int>(row_left <= 0           ? 0
                                       : row_left >= 4 * quads ? quads
                                                               : (row_left + 3) / 4);
  const std::int64_t own_head = warp_head + row + 4 * lane;
  const bool has_own = static_cast<int>(lane) < present;
  const unsigned char* from = stages + (warp * shape::warp_heads + row) * head_bytes + lane * 16;
  unsigned char* buffers = stages + shape::codes_at + warp * 2 * shape::warp_code_bytes;
  const auto store_bytes = static_cast<std::uint32_t>(
      (left < shape::warp_heads ? left : shape::warp_heads) * shape::code_bytes);

  int stage = 0;
  std::uint32_t parity = 0;
  std::uint32_t buffer = 0;
  std::int64_t token = blockIdx.x;
  std::uint32_t weight = has_own && token < a.tokens ? load_weight(a, token, own_head) : 0;
  for (; token < a.tokens; token += gridDim.x) {
    const std::int64_t following = token + gridDim.x;
    const std::uint32_t next_weight =
        has_own && following < a.tokens ? load_weight(a, following, own_head) : 0;
    const unsigned char* rows = from + stage * shape::stage_bytes;
    unsigned char* codes = nullptr;
    if constexpr (bulk_stores) {
      codes = buffers + buffer * shape::warp_code_bytes + row * shape::code_bytes + codes_at;
      if (G::lane() == 0) wait_bulk_stores_read<1>();
      __syncwarp();
    } else {
      codes = a.codes + (token * a.heads + warp_head + row) * shape::code_bytes + codes_at;
    }
    full[stage].wait(parity);
    __syncwarp();
    const angles<G> turned =
        shared_angles(stages + stage * shape::stage_bytes + shape::angles_at, a.table.is_f32);
    gathered_scales<fp4> scales;
    KVCTS_UNROLL for (int p = 0; p < quads / 2; ++p) {
      G::bf16x8 low[2];
      G::bf16x8 high[2];
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        low[i] = shared_16_bytes(rows + (2 * p + i) * 4 * head_bytes);
        high[i] = shared_16_bytes(rows + (2 * p + i) * 4 * head_bytes + 128);
      }
      if (p == quads / 2 - 1) {  // all is read
        __syncwarp();
        if (G::lane() == 0) empty[stage].arrive();
      }
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        high[i] = rotated_bf16<G, rope_form::query>(high[i], turned);
      }
      const pair_codes<fp4> r = quantize_pair<fp4>(low, high);
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const auto words = paired_codes(r.low[i], r.high[i]);
        const int q = 2 * p + i;
        if (bulk_stores || q < present) store_codes(codes + q * 4 * shape::code_bytes, words);
      }
      scales.add(p, r);
    }
    if constexpr (bulk_stores) {
      fence_for_bulk_store();
      __syncwarp();
      if (G::lane() == 0 && left > 0) {
        bulk_store(a.codes + (token * a.heads + warp_head) * shape::code_bytes,
                   buffers + buffer * shape::warp_code_bytes, store_bytes);
      }
      buffer ^= 1u;
    }
    const std::uint32_t own = scales.own();
    if (has_own) store_scale_and_weight<fp4>(a, token * a.heads + own_head, weight, own);
    weight = next_weight;
    if (++stage == shape::form.stages) {
      stage = 0;
      parity ^= 1u;
    }
  }
  if constexpr (bulk_stores) {
    if (G::lane() == 0) wait_bulk_stores_read<0>();
  }
}
#endif

template <query_codes Form>
__global__ void __launch_bounds__(ring_shape<Form>::threads, ring_shape<Form>::form.blocks)
    ring_kernel(const __grid_constant__ fused_indexer_q_rope_quant_arguments a) {
  wait_for_earlier_kernel();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using shape = ring_shape<Form>;
  extern __shared__ __align__(128) unsigned char stages[];
  __shared__ device::phase_barrier full[shape::form.stages];
  __shared__ device::phase_barrier empty[shape::form.stages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < shape::form.stages; ++i) {
      full[i].init(1);
      empty[i].init(shape::form.warps);
    }
    device::fence_barriers();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t head = static_cast<std::int64_t>(blockIdx.y) * shape::heads;
  if (warp == shape::form.warps) {
    fill_ring<Form>(a, head, stages, full, empty);
  } else {
    quantize_ring<Form>(a, head, warp, stages, full, empty);
  }
#endif
}

// False where the device or the heads want another form.
template <query_codes Form>
bool launch_ring(const fused_indexer_q_rope_quant_arguments& a, cudaStream_t stream) {
  using shape = ring_shape<Form>;
  constexpr const char* name = "fused_indexer_q_rope_quant";
  const std::int64_t across = (a.heads + shape::heads - 1) / shape::heads;
  if (a.q_head_stride != head_bytes || across > largest_grid_y) return false;
  cudaFuncAttributes compiled = {};
  cuda_check(cudaFuncGetAttributes(&compiled, ring_kernel<Form>), name);
  if (compiled.ptxVersion < 90) return false;
  int device = 0;
  int processors = 0;
  cuda_check(cudaGetDevice(&device), name);
  cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), name);
  cuda_check(cudaFuncSetAttribute(ring_kernel<Form>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  shape::shared_bytes),
             name);
  const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(
                      a.tokens, static_cast<std::int64_t>(processors) * shape::form.blocks)),
                  static_cast<unsigned>(across));
  launch_shared(ring_kernel<Form>, grid, shape::threads, shape::shared_bytes, stream, name, a);
  return true;
}

template <query_codes Form, bool Aligned>
struct usual_body {
  static constexpr int strips = Form == query_codes::e4m3fnuz ? 2 : 4;  // in flight a warp
  static constexpr int heads_a_warp = 2 * strips;
  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using G = device::group;
    const auto turned = device::load_angles<G, Aligned>(device::query_angles<G, Aligned>(a, token),
                                                        0, 2, a.table.is_f32);
    device::quantize_query_heads<G, Form, Aligned, strips>(a, turned, token, head);
    if constexpr (Form == query_codes::mxfp4) {
      device::scale_query_weights<G, Aligned>(a, token, head, heads_a_warp);
    }
  }
};
template <query_codes Form>
struct any_body {
  static constexpr int heads_a_warp = 1;
  static KVCTS_INLINE void run(const fused_indexer_q_rope_quant_arguments& a, std::int64_t token,
                               std::int64_t head) {
    using G = device::group;
    device::quantize_any_query_head<G, Form>(a, device::query_angles<G, false>(a, token), token,
                                             head);
    if constexpr (Form == query_codes::mxfp4) {
      device::scale_query_weights<G, false>(a, token, head, heads_a_warp);
    }
  }
};

bool is_aligned(const fused_indexer_q_rope_quant_arguments& a) {
  const std::int64_t weight = a.weights_are_f32 ? 4 : 2;
  const std::uintptr_t weight_out = a.weights_out_are_f32 ? 4 : 2;
  return is_multiple(a.positions, 8) && is_multiple(a.q, 16) && is_multiple(a.q_token_stride, 16) &&
         is_multiple(a.q_head_stride, 16) && is_multiple(a.table.start, 16) &&
         is_multiple(a.table.stride, 16) &&
         is_multiple(a.weights, static_cast<std::uintptr_t>(weight)) &&
         is_multiple(a.weights_token_stride, weight) && is_multiple(a.codes, 8) &&
         is_multiple(a.weights_out, weight_out) &&
         (a.form != query_codes::mxfp4 || is_multiple(a.scales, 4));
}

// Of aligned_body, where there is work for the whole device. MXFP4 is bound by instructions, and
// more quads share out those of a warp.
constexpr int fp8_quads = 2;
constexpr int fp4_quads = 4;

template <query_codes Form>
void launch_form(const fused_indexer_q_rope_quant_arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_indexer_q_rope_quant";
  if (!device::is_usual_query(a)) return launch_heads<any_body<Form>>(a, stream, name);
  if (!is_aligned(a)) return launch_heads<usual_body<Form, false>>(a, stream, name);
  if constexpr (Form == query_codes::e4m3fnuz) {
    launch_heads<usual_body<Form, true>>(a, stream, name);
  } else if (a.tokens * a.heads <= 16 * few_warps ||
             (KVCTS_VARIANT != 0 && !is_multiple(a.codes, 16))) {
    launch_spread_heads<aligned_body<Form, 1>>(a, stream, name);
  } else if constexpr (KVCTS_VARIANT == 0) {
    launch_spread_heads<aligned_body<Form, Form == query_codes::mxfp4 ? fp4_quads : fp8_quads>>(
        a, stream, name);
  } else if constexpr (KVCTS_VARIANT <= 2 || KVCTS_VARIANT == 7) {
    constexpr bool fewer = KVCTS_VARIANT == 7;
    launch_spread_heads<paired_body<Form, fewer ? 2 : 4, fewer ? 4 : 3>>(a, stream, name);
  } else {
    if (launch_ring<Form>(a, stream)) return;
    launch_spread_heads<paired_body<Form, 4, 3>>(a, stream, name);
  }
}

}  // namespace

void launch_fused_indexer_q_rope_quant(const fused_indexer_q_rope_quant_arguments& a, profile /*p*/,
                                       cudaStream_t stream) {
  switch (a.form) {
    case query_codes::e4m3fn:
      return launch_form<query_codes::e4m3fn>(a, stream);
    case query_codes::e4m3fnuz:
      return launch_form<query_codes::e4m3fnuz>(a, stream);
    case query_codes::mxfp4:
      return launch_form<query_codes::mxfp4>(a, stream);
  }
}

}  // namespace kvcts
