#include "optimized/cuda/shared_rows.h"
#include "optimized/kernels/fused_q_kv_rmsnorm_quant.h"

namespace kvcts {
namespace {

using arguments = with_profile<fused_q_kv_rmsnorm_quant_arguments>;

// Measured constants: rows a block has in hand, and from how many tokens on it has more than one.
#ifndef KVCTS_Q_KV_ROWS
#define KVCTS_Q_KV_ROWS 2
#endif
#ifndef KVCTS_Q_KV_MANY
#define KVCTS_Q_KV_MANY 1024
#endif

// Part `part` of q, 256 dims: a block of 32 is 4 lanes, two tiles.
__device__ __forceinline__ void store_q_part(const fused_q_kv_rmsnorm_quant_arguments& a,
                                             std::int64_t row, int part,
                                             device::row_part<device::group, 8> y) {
  using G = device::group;
  float amax = -1.0f;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const std::uint32_t rounded = G::pack_bf16(y.v[j], y.v[j + 1]);
    y.v[j] = device::bf16_even<G>(rounded);
    y.v[j + 1] = device::bf16_odd<G>(rounded);
    amax = device::larger_magnitude<G>(y.v[j], device::larger_magnitude<G>(y.v[j + 1], amax));
  }
  const std::uint32_t scale = device::scale_of_block<G>(device::largest_over<G, 4>(amax));
  device::store_e4m3_part<G, 8, true, device::e4m3_form::unclamped>(
      a.q.to + row * a.q.to_stride + part * 256, y, device::integer_multiplier<G>(scale));
  std::uint32_t word = scale << ((G::lane() << 1) & 24u);  // byte lane / 4 % 4
  word |= G::shuffle_xor<4>(word);
  word |= G::shuffle_xor<8>(word);
  unsigned char* tile = device::scales_of_row(a, row) + part * 1024 + (G::lane() >> 4) * 512;
  if ((G::lane() & 15u) == 0) *reinterpret_cast<std::uint32_t*>(tile) = word;
}

// A warp's part of Rows rows: of q, or of kv.
template <int Warps, int Rows, bool IsQ>
__device__ __forceinline__ void run_part(const arguments& a, std::int64_t first, int part,
                                         float (&sums)[Rows][8]) {
  using G = device::group;
  const norm_rows& rows = IsQ ? a.of.q : a.of.kv;
  const int parts = rows.norm.whole_parts;
  device::shared_parts<8, 1> in[Rows];
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
    in[i] = device::load_shared_parts<8, 1, Warps>(rows.from + (first + i) * rows.from_stride, part,
                                                   parts, first + i < a.of.tokens);
  }
  const auto weight =
      device::load_parameter_part<G, 8, true>(rows.weight.data, rows.weight.is_f32, part * 256);
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
    const float sum = device::shared_squares<8, 1, Warps>(in[i], part, parts);
    if (G::lane() == 0) sums[i][part] = sum;
  }
  device::wait_for_row(IsQ ? 1 : 2, parts);
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
    if (first + i >= a.of.tokens) break;
    const float r =
        device::reciprocal_root(device::sum_over_warps<Warps>(sums[i], parts), rows.norm, a.rules);
    const auto y = device::rms_normed_part<8>(in[i].part[0], weight, r);
    if constexpr (IsQ) {
      store_q_part(a.of, first + i, part, y);
    } else {
      device::store_bf16_part<G, 8, true>(rows.to + (first + i) * rows.to_stride + part * 512, y);
    }
  }
}

// Aligned rows of whole parts, no more than the tree has warps: q's warps come first.
template <int Warps, int Rows>
__global__ void __launch_bounds__(64 * Warps)
    shared_q_kv_kernel(const __grid_constant__ arguments a) {
  __shared__ float sums[2][Rows][8];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * Rows;
  const int warp = static_cast<int>(threadIdx.x / 32);
  if (first < a.of.tokens) {
    const int q_parts = a.of.q.norm.whole_parts;
    if (warp < q_parts) {
      run_part<Warps, Rows, true>(a, first, warp, sums[0]);
    } else {
      run_part<Warps, Rows, false>(a, first, warp - q_parts, sums[1]);
    }
  }
  if (first + Rows <= a.of.tokens || warp != 0) return;
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
    if (first + i >= a.of.tokens && first + i < a.of.scale_rows) {
      device::clear_scales<device::group>(a.of, first + i);
    }
  }
}

template <int Warps, bool Fast>
struct body {
  static __device__ void run(const arguments& a, std::int64_t row, int task) {
    using G = device::group;
    if (task == 0) {
      device::quantize_q<G, Warps, Fast>(a.of, row, a.rules);
    } else {
      device::normalize_kv<G, Warps, Fast>(a.of, row, a.rules);
    }
  }
};

bool is_fast(const fused_q_kv_rmsnorm_quant_arguments& a) {
  return a.q.norm.whole_parts > 0 && a.kv.norm.whole_parts > 0 && is_aligned(a.q) &&
         is_aligned(a.kv) && is_multiple(a.scales, 4);
}

template <int Warps, int Rows>
void launch_shared(const arguments& a, cudaStream_t stream, const char* name) {
  const auto blocks = static_cast<unsigned>((a.of.scale_rows + Rows - 1) / Rows);
  const auto warps = static_cast<unsigned>(a.of.q.norm.whole_parts + a.of.kv.norm.whole_parts);
  shared_q_kv_kernel<Warps, Rows><<<blocks, 32 * warps, 0, stream>>>(a);
  cuda_check(cudaGetLastError(), name);
}

template <int Warps>
void launch(const arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_q_kv_rmsnorm_quant";
  if (!is_fast(a.of) || a.of.scale_rows > largest_grid) {
    launch_tasks<body<Warps, false>, 2, 2>(a, a.of.scale_rows, stream, name);
  } else if (a.of.tokens >= KVCTS_Q_KV_MANY) {
    launch_shared<Warps, KVCTS_Q_KV_ROWS>(a, stream, name);
  } else {
    launch_shared<Warps, 1>(a, stream, name);
  }
}

}  // namespace

void launch_fused_q_kv_rmsnorm_quant(const fused_q_kv_rmsnorm_quant_arguments& a, profile p,
                                     cudaStream_t stream) {
  if (a.scale_rows == 0) return;
  const arguments both = {a, p};
  const auto run = a.q.norm.launch_warps == 8 ? launch<8> : launch<4>;
  run(both, stream);
}

}  // namespace kvcts
