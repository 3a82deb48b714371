#include "optimized/cuda/packed_bf16.h"
#include "optimized/cuda/rows.h"
#include "optimized/kernels/rope_quant_insert.h"

#ifndef KVCTS_VARIANT
#define KVCTS_VARIANT 0
#endif
// 0 has every case take the batches.
#ifndef KVCTS_FEW_ROWS
#define KVCTS_FEW_ROWS (132 * 8)
#endif

namespace kvcts {
namespace {

template <profile P, latent_record Record, bool Aligned>
struct insert_body {
  static KVCTS_INLINE void run(const rope_quant_insert_arguments& a, std::int64_t row) {
    device::insert_latent<device::group, P, Record, Aligned>(a, row);
  }
};

// Rows in flight a warp; few rows are spread over more warps, one each.
constexpr int batch_rows = 4;
constexpr std::int64_t few_rows = KVCTS_FEW_ROWS;
constexpr int block_warps = 4;

// How a record lies: 512 dims as two halves of 8 dims a lane, of which the last 8 lanes' rotate.
template <latent_record Record>
struct latent_layout;
template <>
struct latent_layout<latent_record::v4> {
  static constexpr int data_bytes = 576, scale_bytes = 8, lanes_per_block = 8, scale_bits = 16;
};
template <>
struct latent_layout<latent_record::v41_mxfp8> {
  static constexpr int data_bytes = 512, scale_bytes = 16, lanes_per_block = 4, scale_bits = 16;
};
template <>
struct latent_layout<latent_record::v41_nvfp4> {
  static constexpr int data_bytes = 256, scale_bytes = 32, lanes_per_block = 2, scale_bits = 8;
};

// The E4M3 scales of two NVFP4 blocks of bf16 values, a byte each, and their reciprocals.
KVCTS_INLINE std::uint32_t nvfp4_scales(std::uint32_t amax, float (&inverses)[2]) {
  using G = device::group;
  // An infinity becomes 448.
  const float even = fmaxf(device::bf16_even<G>(amax) * 0x1.555556p-3f, 0x1p-9f);
  const float odd = fmaxf(device::bf16_odd<G>(amax) * 0x1.555556p-3f, 0x1p-9f);
  float numbers[2];
#ifdef KVCTS_E4M3_INSTRUCTION
  const std::uint32_t scales = device::e4m3x2(even, odd);
  device::e4m3x2_numbers(scales, numbers[0], numbers[1]);
#else
  const std::uint32_t scales = device::e4m3_code<G>(even) | (device::e4m3_code<G>(odd) << 8);
  numbers[0] = __uint_as_float((scales & 0xFFu) << 20) * 0x1p120f;
  numbers[1] = __uint_as_float((scales >> 8) << 20) * 0x1p120f;
#endif
  KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverses[i]) : "f"(numbers[i]));
  }
  return scales;
}

// E2M1 codes of x / d, inverse within 3 ulps of 1/d. A quotient's rounding boundary times d has at
// most 7 significant bits, so that x either is on it or at least a bf16 ulp away: a quotient within
// about 2^-16, rounded to bf16, is on the same side, and on it where x is. Holds for every d and x.
KVCTS_INLINE std::uint32_t encode_nvfp4(const device::words4& x, float inverse) {
  const std::uint32_t high = device::group::pack_bf16(inverse, inverse);
  const float rest = inverse - __uint_as_float(high & 0xFFFF0000u);
  const std::uint32_t low = device::group::pack_bf16(rest, rest);
  std::uint32_t codes[4];
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    const std::uint32_t m = device::abs2(x.w[j]);
    const std::uint32_t q = device::fma2(m, high, device::mul2(m, low));
    // e2m1_code's three lines; infinities and NaN end at 7.
    const std::uint32_t line1 = device::fma2(q, 0x40004000u, 0x43004300u);
    const std::uint32_t line2 = device::fma2(q, 0x3F803F80u, 0x43024302u);
    const std::uint32_t line3 = device::fma2(q, 0x3F003F00u, 0x43044304u);
    codes[j] = device::min2(device::min2(line1, line2), device::min2(line3, 0x43074307u));
  }
  // Bytes of even and odd elements, and their signs from the top bytes; a NaN here is positive.
  const std::uint32_t code01 = __byte_perm(codes[0], codes[1], 0x6240);
  const std::uint32_t code23 = __byte_perm(codes[2], codes[3], 0x6240);
  const std::uint32_t sign01 = __byte_perm(x.w[0], x.w[1], 0x7351);
  const std::uint32_t sign23 = __byte_perm(x.w[2], x.w[3], 0x7351);
  const std::uint32_t magnitudes =
      __byte_perm(code01, code23, 0x7632) * 16 + __byte_perm(code01, code23, 0x5410);
  const std::uint32_t even_signs = (__byte_perm(sign01, sign23, 0x5410) >> 4) & 0x08080808u;
  return magnitudes | even_signs | (__byte_perm(sign01, sign23, 0x7632) & 0x80808080u);
}

// Of a row, what does not rotate: codes, and their scales.
template <latent_record Record>
KVCTS_INLINE void store_still_dims(device::byte* data, device::byte* scales,
                                   const device::words4 (&in)[2]) {
  using layout = latent_layout<Record>;
  constexpr int lanes = layout::lanes_per_block;
  const std::uint32_t lane = device::group::lane();
  const bool still = lane < 24;  // in the upper half
  device::words4 x[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    // v4's codes are those of the row as it came.
    x[half] = Record == latent_record::v4 ? in[half] : device::rotated_by_zero(in[half]);
  }
  constexpr std::uint32_t floor = Record == latent_record::v41_nvfp4 ? 0u : device::key_amax_floor;
  const std::uint32_t amax =
      device::largest_of_two<lanes>(device::magnitudes(x[0]), device::magnitudes(x[1]), floor);
  std::uint32_t both_scales;
  if constexpr (Record == latent_record::v41_nvfp4) {
    float inverses[2];
    both_scales = nvfp4_scales(amax, inverses);
    device::store_4_bytes(data + lane * 4, encode_nvfp4(x[0], inverses[0]));
    const std::uint32_t upper = encode_nvfp4(x[1], inverses[1]);
    if (still) device::store_4_bytes(data + 128 + lane * 4, upper);
  } else {
    const device::two_scales two = device::key_scales(amax);
    both_scales = two.scales;
    std::uint32_t lo;
    std::uint32_t hi;
    device::encode_e4m3_by(x[0], __byte_perm(two.factors, 0, 0x1010), lo, hi);
    device::store_8_bytes(data + lane * 8, lo, hi);
    device::encode_e4m3_by(x[1], __byte_perm(two.factors, 0, 0x3232), lo, hi);
    if (still) device::store_8_bytes(data + 256 + lane * 8, lo, hi);
  }
  // The first two lanes of a block store its scale in each half. v4's pad is 0.
  const std::uint32_t half = lane % lanes;
  const bool pad = Record == latent_record::v4 && half == 1 && !still;
  const std::uint32_t byte = pad ? 0u : both_scales >> (half * layout::scale_bits);
  if (half == 0 || (half == 1 && (still || pad))) {
    scales[half * (32 / lanes) + lane / lanes] = static_cast<device::byte>(byte);
  }
}

// The 8 dims of a lane that rotate, eighth `eighth` of 64. All lanes take part.
template <latent_record Record>
KVCTS_INLINE void store_turning_dims(const device::record_place& to, bool stored,
                                     std::uint32_t eighth, const device::words4& in,
                                     const device::angles<device::group>& turned) {
  using G = device::group;
  using layout = latent_layout<Record>;
  float x[8];
  device::unpack<G>(in, x);
  device::rotate<G, device::rope_form::store>(x, turned);
  std::uint32_t scale = 0;
  if constexpr (Record == latent_record::v4) {
    if (!stored) return;
    const device::words4 out = device::pack<G>(x);
    device::store_8_bytes(to.data + 448 + eighth * 16, out.w[0], out.w[1]);
    device::store_8_bytes(to.data + 456 + eighth * 16, out.w[2], out.w[3]);
    return;
  } else if constexpr (Record == latent_record::v41_mxfp8) {
    std::uint32_t lo;
    std::uint32_t hi;
    device::mxfp8_codes<G>(x, scale, lo, hi);
    if (stored) device::store_8_bytes(to.data + 448 + eighth * 8, lo, hi);
  } else {
    std::uint32_t codes;
    device::nvfp4_codes<G>(x, scale, codes);
    if (stored) device::store_4_bytes(to.data + 224 + eighth * 4, codes);
  }
  constexpr std::uint32_t lanes = layout::lanes_per_block;
  if (stored && eighth % lanes == 0) {
    to.scales[layout::scale_bytes - 8 / lanes + eighth / lanes] = static_cast<device::byte>(scale);
  }
}

#include "optimized/cuda/rope_quant_insert_variants.h"

// A warp does rows_a_warp <= batch_rows rows: what does not rotate row by row, what does of all of
// them at once, 8 lanes a row.
template <latent_record Record>
__global__ void __launch_bounds__(32 * block_warps)
    insert_kernel(const __grid_constant__ rope_quant_insert_arguments a, int rows_a_warp) {
  wait_for_earlier_kernel();
  using layout = latent_layout<Record>;
  const std::uint32_t lane = device::group::lane();
  const std::uint32_t eighth = lane % 8;
  const int my_row = static_cast<int>(lane / 8);
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32) * rows_a_warp;
  device::group_row at = {first + my_row, -1, 0};
  const bool inside = my_row < rows_a_warp && at.row < a.at.rows;
  const bool stored =
      inside && device::load_group_row<device::group, true>(a.at, first + my_row, at);
  // Without groups almost every row is stored: its load need not wait for its slot.
  const bool wanted = a.at.ratio == 1 ? inside : stored;
  const unsigned wanted_rows = __ballot_sync(0xFFFFFFFFu, wanted);

  device::words4 in[batch_rows][2];
  KVCTS_UNROLL for (int r = 0; r < batch_rows; ++r) {
    if ((wanted_rows >> (8 * r) & 1u) == 0) continue;
    const device::byte* from = a.latent + (first + r) * a.latent_row_stride + lane * 16;
    in[r][0] = device::load_16_bytes(from);
    in[r][1] = device::load_16_bytes(from + 512);
  }
  device::words4 turning = {};
  if (wanted) {
    turning = device::load_16_bytes(a.latent + (first + my_row) * a.latent_row_stride + 896 +
                                    eighth * 16);
  }
  device::angles<device::group> turned = {};
  if (stored) {
    turned = device::load_angles_of_eighth(device::angles_of(a.table, at.position), eighth,
                                           a.table.is_f32);
  }
  const device::record_place mine =
      device::place_of_slot(a.cache, at.slot, layout::data_bytes, layout::scale_bytes);

  const unsigned stored_rows = __ballot_sync(0xFFFFFFFFu, stored);
  KVCTS_UNROLL for (int r = 0; r < batch_rows; ++r) {
    if ((stored_rows >> (8 * r) & 1u) == 0) continue;
    store_still_dims<Record>(device::pointer_of_lane(mine.data, 8 * r),
                             device::pointer_of_lane(mine.scales, 8 * r), in[r]);
  }
  store_turning_dims<Record>(mine, stored, eighth, turning, turned);
}

template <latent_record Record>
void launch_batches(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  if (a.at.rows == 0) return;
  const int rows_a_warp = a.at.rows <= few_rows ? 1 : batch_rows;
#if KVCTS_VARIANT > 0
  if (Record != latent_record::v4 || KVCTS_VARIANT == 1) {
    return launch_variant<Record>(a, stream);
  }
#endif
  const std::int64_t rows_a_block = rows_a_warp * block_warps;
  const auto blocks = static_cast<unsigned>((a.at.rows + rows_a_block - 1) / rows_a_block);
  launch_kernel(insert_kernel<Record>, blocks, 32 * block_warps, stream, "rope_quant_insert", a,
                rows_a_warp);
}

bool is_aligned(const rope_quant_insert_arguments& a) {
  const int line = a.record == latent_record::bf16 ? 16 : 8;
  const bool plain = a.record == latent_record::bf16 || a.record == latent_record::fp8;
  return is_multiple(a.latent, 16) && is_multiple(a.latent_row_stride, 16) &&
         is_multiple(a.at.slots, 8) && is_multiple(a.at.positions, 8) &&
         is_multiple(a.table.start, 16) && is_multiple(a.table.stride, 16) &&
         is_multiple(a.cache.start, line) && is_multiple(a.cache.page_stride, line) &&
         (!plain || is_multiple(a.entry_stride, line)) && is_multiple(a.fp8_scale, 4);
}

template <profile P, latent_record Record, bool Aligned>
void launch_record(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  launch_rows<insert_body<P, Record, Aligned>>(a, a.at.rows, stream, "rope_quant_insert");
}

// The same code for both profiles.
template <latent_record Record>
void launch_record(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  if (!is_aligned(a)) return launch_record<profile::nvidia, Record, false>(a, stream);
  if constexpr (Record == latent_record::bf16) {
    launch_record<profile::nvidia, Record, true>(a, stream);
  } else {
    launch_batches<Record>(a, stream);
  }
}
template <profile P>
void launch_fp8_rows(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  (is_aligned(a) ? launch_record<P, latent_record::fp8, true>
                 : launch_record<P, latent_record::fp8, false>)(a, stream);
}

}  // namespace

void launch_rope_quant_insert(const rope_quant_insert_arguments& a, profile p,
                              cudaStream_t stream) {
  switch (a.record) {
    case latent_record::v4:
      return launch_record<latent_record::v4>(a, stream);
    case latent_record::v41_mxfp8:
      return launch_record<latent_record::v41_mxfp8>(a, stream);
    case latent_record::v41_nvfp4:
      return launch_record<latent_record::v41_nvfp4>(a, stream);
    case latent_record::bf16:
      return launch_record<latent_record::bf16>(a, stream);
    case latent_record::fp8:
      return (p == profile::nvidia ? launch_fp8_rows<profile::nvidia>
                                   : launch_fp8_rows<profile::ieee>)(a, stream);
  }
}

}  // namespace kvcts
