#include "optimized/cuda/finite_latents.h"
#include "optimized/cuda/rows.h"

namespace kvcts {
namespace {

template <profile P, latent_record Record, bool Aligned>
struct insert_body {
  static KVCTS_INLINE void run(const rope_quant_insert_arguments& a, std::int64_t row) {
    device::insert_latent<device::group, P, Record, Aligned>(a, row);
  }
};

// Rows in flight a warp, of more than spread_rows; others have one (launch_rows).
constexpr int batch_rows = 4;
constexpr int block_warps = 4;

// Of a record.
template <latent_record Record>
constexpr int data_bytes = Record == latent_record::v4          ? 576
                           : Record == latent_record::v41_mxfp8 ? 512
                                                                : 256;
template <latent_record Record>
constexpr int scale_bytes = Record == latent_record::v4          ? 8
                            : Record == latent_record::v41_mxfp8 ? 16
                                                                 : 32;

// Of a v4 record, what does not rotate: 8 dims a lane of each half, the codes of the row as it
// came.
KVCTS_INLINE void store_v4_codes(device::byte* data, device::byte* scales,
                                 const device::words4 (&in)[2]) {
  const std::uint32_t lane = device::group::lane();
  const bool still = lane < 24;  // in the upper half
  const device::two_scales two = device::key_scales(device::largest_of_two<8>(
      device::magnitudes(in[0]), device::magnitudes(in[1]), device::key_amax_floor));
  const uint2 lower = device::e4m3_codes<true>(in[0], device::low_twice(two.factors));
  device::store_8_bytes(data + lane * 8, lower.x, lower.y);
  const uint2 upper = device::e4m3_codes<true>(in[1], device::high_twice(two.factors));
  if (still) device::store_8_bytes(data + 256 + lane * 8, upper.x, upper.y);
  // The first two lanes of a block store its scale in each half; the last byte is a pad of 0.
  const std::uint32_t half = lane % 8;
  const std::uint32_t byte = half == 1 && !still ? 0u : two.scales >> (half * 16);
  if (half <= 1) scales[half * 4 + lane / 8] = static_cast<device::byte>(byte);
}

// v4: a warp does batch_rows rows, what does not rotate row by row, what does of all of them at
// once, 8 lanes a row. Bound by memory.
__global__ void __launch_bounds__(32 * block_warps)
    insert_v4_kernel(const __grid_constant__ rope_quant_insert_arguments a) {
  wait_for_earlier_kernel();
  const std::uint32_t lane = device::group::lane();
  const std::uint32_t eighth = lane % 8;
  const int my_row = static_cast<int>(lane / 8);
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32) * batch_rows;
  device::group_row at = {first + my_row, -1, 0};
  const bool stored = first + my_row < a.at.rows &&
                      device::load_group_row<device::group, true>(a.at, first + my_row, at);
  const unsigned stored_rows = __ballot_sync(0xFFFFFFFFu, stored);

  device::words4 in[batch_rows][2];
  KVCTS_UNROLL for (int r = 0; r < batch_rows; ++r) {
    if ((stored_rows >> (8 * r) & 1u) == 0) continue;
    const device::byte* from = a.latent + (first + r) * a.latent_row_stride + lane * 16;
    in[r][0] = device::load_16_bytes(from);
    in[r][1] = device::load_16_bytes(from + 512);
  }
  device::words4 turning = {};
  device::angles<device::group> turned = {};
  if (stored) {
    turning = device::load_16_bytes(a.latent + (first + my_row) * a.latent_row_stride + 896 +
                                    eighth * 16);
    turned = device::load_angles_of_eighth(device::angles_of(a.table, at.position), eighth,
                                           a.table.is_f32);
  }
  const device::record_place mine = device::place_of_slot(
      a.cache, at.slot, data_bytes<latent_record::v4>, scale_bytes<latent_record::v4>);
  KVCTS_UNROLL for (int r = 0; r < batch_rows; ++r) {
    if ((stored_rows >> (8 * r) & 1u) == 0) continue;
    store_v4_codes(device::pointer_of_lane(mine.data, 8 * r),
                   device::pointer_of_lane(mine.scales, 8 * r), in[r]);
  }
  if (!stored) return;
  float x[8];
  device::unpack<device::group>(turning, x);
  device::rotate<device::group, device::rope_form::store>(x, turned);
  const device::words4 out = device::pack<device::group>(x);
  device::store_8_bytes(mine.data + 448 + eighth * 16, out.w[0], out.w[1]);
  device::store_8_bytes(mine.data + 456 + eighth * 16, out.w[2], out.w[3]);
}

// A lane's 4 cosines and sines as they lie in the table: nothing waits for them before they are
// used.
struct loaded_angles {
  device::words4 c, s;
};
KVCTS_INLINE loaded_angles load_angle_words(const device::byte* row, std::uint32_t eighth,
                                            bool is_f32) {
  if (is_f32) {
    return {device::load_16_bytes(row + eighth * 16),
            device::load_16_bytes(row + eighth * 16 + 128)};
  }
  const uint2 c = device::load_global(reinterpret_cast<const uint2*>(row + eighth * 8));
  const uint2 s = device::load_global(reinterpret_cast<const uint2*>(row + eighth * 8 + 64));
  return {{{c.x, c.y, 0, 0}}, {{s.x, s.y, 0, 0}}};
}
KVCTS_INLINE float number_at(const device::words4& in, int i, bool is_f32) {
  if (is_f32) return __uint_as_float(in.w[i]);
  return i % 2 == 0 ? device::bf16_even<device::group>(in.w[i / 2])
                    : device::bf16_odd<device::group>(in.w[i / 2]);
}
KVCTS_INLINE device::angles<device::group> numbers_of(const loaded_angles& in, bool is_f32) {
  device::angles<device::group> r;
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
    r.c[i] = number_at(in.c, i, is_f32);
    r.s[i] = number_at(in.s, i, is_f32);
  }
  return r;
}

// The 8 dims of a lane that rotate, eighth `eighth` of 64. All lanes take part.
template <latent_record Record>
KVCTS_INLINE void store_turned_dims(const device::record_place& to, bool stored,
                                    std::uint32_t eighth, const device::words4& in,
                                    const device::angles<device::group>& turned) {
  using G = device::group;
  float x[8];
  device::unpack<G>(in, x);
  device::rotate<G, device::rope_form::store>(x, turned);
  std::uint32_t scale;
  if constexpr (Record == latent_record::v41_mxfp8) {
    std::uint32_t lo;
    std::uint32_t hi;
    device::mxfp8_codes<G>(x, scale, lo, hi);
    if (!stored) return;
    device::store_8_bytes(to.data + 448 + eighth * 8, lo, hi);
    if (eighth % 4 == 0) to.scales[14 + eighth / 4] = static_cast<device::byte>(scale);
  } else {
    std::uint32_t codes;
    device::nvfp4_codes_of_turned(x, scale, codes);
    if (!stored) return;
    device::store_4_bytes(to.data + 224 + eighth * 4, codes);
    if (eighth % 2 == 0) to.scales[28 + eighth / 2] = static_cast<device::byte>(scale);
  }
}

// The v41 records by the same plan, 16 dims a lane. NVFP4 is bound by instructions, so that rows of
// finite values have a shorter form and other rows are done after them, by the plain one. 64
// registers leave a multiprocessor 32 warps, all of 16384 rows at once: the angles, and the dims
// that rotate once more, from the L1 cache, are loaded as the first half of the rows has gone.
template <latent_record Record, bool Groups>
__global__ void __launch_bounds__(32 * block_warps, 32 / block_warps)
    insert_v41_kernel(const __grid_constant__ rope_quant_insert_arguments a) {
  wait_for_earlier_kernel();
  const std::uint32_t lane = device::group::lane();
  const std::uint32_t eighth = lane % 8;
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * block_warps + threadIdx.x / 32) * batch_rows;
  if (first >= a.at.rows) return;
  const std::int64_t left = a.at.rows - first;
  const int count = left < batch_rows ? static_cast<int>(left) : batch_rows;

  // Of eight lanes each, a row; those past the end are the last one.
  const int my_row = static_cast<int>(lane / 8);
  const std::int64_t row = first + (my_row < count ? my_row : count - 1);
  // Slot and position together: one waits for the other in load_group_row.
  const std::int64_t slot = device::group::load_i64<true>(a.at.slots + row * 8);
  std::int64_t position = device::group::load_i64<true>(a.at.positions + row * 8);
  const bool stored = my_row < count && slot >= 0 && (!Groups || position % 2 == 1);
  if constexpr (Groups) position -= 1;

  // Without groups almost every row is stored: its load need not wait for its slot.
  unsigned wanted_rows = 0xFFFFFFFFu;
  if constexpr (Groups) wanted_rows = __ballot_sync(0xFFFFFFFFu, stored);
  const device::byte* latents = a.latent + first * a.latent_row_stride + lane * 32;
  device::lane_dims in[batch_rows];
  KVCTS_UNROLL for (int r = 0; r < batch_rows; ++r) {
    if ((wanted_rows >> (8 * r) & 1u) == 0) continue;
    const device::byte* from = latents + (r < count ? r : count - 1) * a.latent_row_stride;
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      const device::words4 x = device::load_16_bytes(from + half * 16);
      KVCTS_UNROLL for (int j = 0; j < 4; ++j) in[r].w[half * 4 + j] = x.w[j];
    }
  }

  const device::record_place mine =
      device::place_of_slot(a.cache, slot, data_bytes<Record>, scale_bytes<Record>);
  const unsigned stored_rows = __ballot_sync(0xFFFFFFFFu, stored);
  device::words4 turning = {};
  loaded_angles turned = {};
  unsigned others = 0;  // rows of infinities and NaN
  KVCTS_UNROLL for (int r = 0; r < batch_rows; ++r) {
    if (r == batch_rows / 2) {
      turning = device::load_16_bytes(a.latent + row * a.latent_row_stride + 896 + eighth * 16);
      if (stored) {
        turned = load_angle_words(device::angles_of(a.table, position), eighth, a.table.is_f32);
      }
    }
    if ((stored_rows >> (8 * r) & 1u) == 0) continue;
    const bool finite =
        device::store_finite_latent<Record>(device::pointer_of_lane(mine.data, 8 * r),
                                            device::pointer_of_lane(mine.scales, 8 * r), in[r]);
    if (!finite) others |= 1u << r;
  }
  store_turned_dims<Record>(mine, stored, eighth, turning, numbers_of(turned, a.table.is_f32));
  if (others == 0) return;
#pragma unroll 1
  for (int r = 0; r < batch_rows; ++r) {
    if ((others >> r & 1u) == 0) continue;
    device::insert_latent<device::group, profile::nvidia, Record, true>(a, first + r);
  }
}

template <latent_record Record>
void launch_batches(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  constexpr std::int64_t rows_a_block = batch_rows * block_warps;
  const auto blocks = static_cast<unsigned>((a.at.rows + rows_a_block - 1) / rows_a_block);
  auto kernel = insert_v4_kernel;
  if constexpr (Record != latent_record::v4) {
    kernel = a.at.ratio == 1 ? insert_v41_kernel<Record, false> : insert_v41_kernel<Record, true>;
  }
  launch_kernel(kernel, blocks, 32 * block_warps, stream, "rope_quant_insert", a);
}

bool is_aligned(const rope_quant_insert_arguments& a) {
  const bool wide = a.record == latent_record::bf16 || a.record == latent_record::v41_mxfp8;
  const int line = wide ? 16 : 8;
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
  if constexpr (Record != latent_record::bf16) {
    if (a.at.rows > spread_rows) return launch_batches<Record>(a, stream);
  }
  launch_record<profile::nvidia, Record, true>(a, stream);
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
