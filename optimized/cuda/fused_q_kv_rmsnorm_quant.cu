#include "optimized/cuda/shared_rows.h"
#include "optimized/kernels/fused_q_kv_rmsnorm_quant.h"

namespace kvcts {
namespace {

using arguments = with_profile<fused_q_kv_rmsnorm_quant_arguments>;

// Measured constants: tokens from which on a warp has a row of its own; rows of a block then.
constexpr std::int64_t many_rows = 4096;
constexpr int block_rows = 4;

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

// A warp's part of a row: of q, or of kv.
template <int Warps, bool IsQ>
__device__ __forceinline__ void run_part(const arguments& a, std::int64_t row, int part,
                                         float (&sums)[8]) {
  using G = device::group;
  const norm_rows& rows = IsQ ? a.of.q : a.of.kv;
  const int parts = rows.norm.whole_parts;
  const auto in =
      device::load_shared_parts<8, 1, Warps>(rows.from + row * rows.from_stride, part, parts, true);
  const auto weight =
      device::load_parameter_part<G, 8, true>(rows.weight.data, rows.weight.is_f32, part * 256);
  const float sum = device::shared_squares<8, 1, Warps>(in, part, parts);
  if (G::lane() == 0) sums[part] = sum;
  device::wait_for_row(IsQ ? 1 : 2, parts);
  const float r =
      device::reciprocal_root(device::sum_over_warps<Warps>(sums, parts), rows.norm, a.rules);
  const auto y = device::rms_normed_part<8>(in.part[0], weight, r);
  if constexpr (IsQ) {
    store_q_part(a.of, row, part, y);
  } else {
    device::store_bf16_part<G, 8, true>(rows.to + row * rows.to_stride + part * 512, y);
  }
}

// Few aligned rows of whole parts, no more than the tree has warps: a warp a part, q's first.
template <int Warps>
__global__ void __launch_bounds__(64 * Warps)
    shared_q_kv_kernel(const __grid_constant__ arguments a) {
  wait_for_earlier_kernel();
  __shared__ float sums[2][8];
  const std::int64_t row = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x / 32);
  if (row >= a.of.tokens) {
    if (warp == 0) device::clear_scales<device::group>(a.of, row);
    return;
  }
  const int q_parts = a.of.q.norm.whole_parts;
  if (warp < q_parts) {
    run_part<Warps, true>(a, row, warp, sums[0]);
  } else {
    run_part<Warps, false>(a, row, warp - q_parts, sums[1]);
  }
}

// Many: a warp a row, of q or of kv. Blocks take turns, so that the short rows of kv keep no place
// from the others. QParts, KvParts: of the rows, 0 where any.
template <int Warps, int QParts, int KvParts>
__global__ void __launch_bounds__(32 * block_rows)
    own_rows_kernel(const __grid_constant__ arguments a) {
  wait_for_earlier_kernel();
  using G = device::group;
  if constexpr (QParts != 0) __builtin_assume(a.of.q.norm.whole_parts == QParts);
  if constexpr (KvParts != 0) __builtin_assume(a.of.kv.norm.whole_parts == KvParts);
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x / 2) * block_rows + threadIdx.x / 32;
  if (row >= a.of.scale_rows) return;
  if (blockIdx.x % 2 == 0) {
    device::quantize_q<G, Warps, true>(a.of, row, a.rules);
  } else {
    device::normalize_kv<G, Warps, true>(a.of, row, a.rules);
  }
}

template <int Warps>
struct body {
  static __device__ void run(const arguments& a, std::int64_t row, int task) {
    using G = device::group;
    if (task == 0) {
      device::quantize_q<G, Warps, false>(a.of, row, a.rules);
    } else {
      device::normalize_kv<G, Warps, false>(a.of, row, a.rules);
    }
  }
};

bool is_fast(const fused_q_kv_rmsnorm_quant_arguments& a) {
  return a.q.norm.whole_parts > 0 && a.kv.norm.whole_parts > 0 && is_aligned(a.q) &&
         is_aligned(a.kv) && is_multiple(a.scales, 4);
}

template <int Warps>
void launch_own_rows(const arguments& a, cudaStream_t stream, const char* name) {
  constexpr int rows = block_rows;
  const auto blocks = static_cast<unsigned>((a.of.scale_rows + rows - 1) / rows * 2);
  if constexpr (Warps == 8) {  // the widths of the model
    if (a.of.q.norm.whole_parts == 6 && a.of.kv.norm.whole_parts == 2) {
      return launch_kernel(own_rows_kernel<Warps, 6, 2>, blocks, 32 * rows, stream, name, a);
    }
  }
  launch_kernel(own_rows_kernel<Warps, 0, 0>, blocks, 32 * rows, stream, name, a);
}

template <int Warps>
void launch(const arguments& a, cudaStream_t stream) {
  constexpr const char* name = "fused_q_kv_rmsnorm_quant";
  if (!is_fast(a.of) || a.of.scale_rows > largest_grid) {
    launch_tasks<body<Warps>, 2, 2>(a, a.of.scale_rows, stream, name);
    return;
  }
  if (a.of.tokens >= many_rows) {
    launch_own_rows<Warps>(a, stream, name);
  } else {
    const int warps = a.of.q.norm.whole_parts + a.of.kv.norm.whole_parts;
    launch_kernel(shared_q_kv_kernel<Warps>, static_cast<unsigned>(a.of.scale_rows), 32 * warps,
                  stream, name, a);
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
