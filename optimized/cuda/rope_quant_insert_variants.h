// Included in rope_quant_insert.cu, in its anonymous namespace.
#pragma once
#if KVCTS_VARIANT > 0

constexpr int variant = KVCTS_VARIANT;

// A lane's cosines and sines as they lie in the table: nothing waits for them before they are used.
struct loaded_angles {
  device::words4 c, s;
};
KVCTS_INLINE loaded_angles load_angle_words(const device::byte* row, std::uint32_t eighth,
                                            bool is_f32) {
  loaded_angles r = {};
  if (is_f32) {
    r.c = device::load_16_bytes(row + eighth * 16);
    r.s = device::load_16_bytes(row + eighth * 16 + 128);
  } else {
    const uint2 c = __ldg(reinterpret_cast<const uint2*>(row + eighth * 8));
    const uint2 s = __ldg(reinterpret_cast<const uint2*>(row + eighth * 8 + 64));
    r.c.w[0] = c.x;
    r.c.w[1] = c.y;
    r.s.w[0] = s.x;
    r.s.w[1] = s.y;
  }
  return r;
}
KVCTS_INLINE device::angles<device::group> numbers_of(const loaded_angles& in, bool is_f32) {
  using G = device::group;
  device::angles<G> r;
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
    const std::uint32_t c = in.c.w[i / 2];
    const std::uint32_t s = in.s.w[i / 2];
    r.c[i] = is_f32       ? __uint_as_float(in.c.w[i])
             : i % 2 == 0 ? device::bf16_even<G>(c)
                          : device::bf16_odd<G>(c);
    r.s[i] = is_f32       ? __uint_as_float(in.s.w[i])
             : i % 2 == 0 ? device::bf16_even<G>(s)
                          : device::bf16_odd<G>(s);
  }
  return r;
}

KVCTS_INLINE std::uint32_t max2_or_nan(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// A byte of ones for each of the four halves with a sign: of a's low half, b's low, a's high, b's
// high.
KVCTS_INLINE std::uint32_t sign_bytes(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, 0xFBD9;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// The same of two words: a's in byte 0, b's in byte 1.
KVCTS_INLINE std::uint32_t word_signs(float a, float b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, 0xFBFB;" : "=r"(r) : "r"(__float_as_uint(a)), "r"(__float_as_uint(b)));
  return r;
}
// a's bits where the mask has ones, b's elsewhere.
template <std::uint32_t Mask>
KVCTS_INLINE std::uint32_t select_bits(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(r) : "r"(a), "r"(b), "n"(Mask));
  return r;
}
KVCTS_INLINE float reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// The E4M3 scale of an NVFP4 block, and its number.
KVCTS_INLINE std::uint32_t nvfp4_scale(float amax, float& number) {
  const float t = fmaxf(amax * 0x1.555556p-3f, 0x1p-9f);
#ifdef KVCTS_E4M3_INSTRUCTION
  const std::uint32_t scale = device::e4m3x2(t, 0.0f);
  float zero;
  device::e4m3x2_numbers(scale, number, zero);
#else
  const std::uint32_t scale = device::e4m3_code<device::group>(t);
  number = __uint_as_float(scale << 20) * 0x1p120f;
#endif
  return scale;
}

// 16 dims a lane.
struct lane_dims {
  std::uint32_t w[8];
};

// E2M1 of magnitudes y counts 0 .5 1 1.5 2 3 4 6. 252 + 2y counts on in its last bits as far as 4,
// since the last place doubles at 256; 256 + y from there, and 262 is the last. y is the quotient
// rounded to bf16 of encode_nvfp4.
KVCTS_INLINE uint2 encode_finite_nvfp4(const lane_dims& x, const lane_dims& m, float inverse) {
  const std::uint32_t high = device::group::pack_bf16(inverse, inverse);
  const float rest = inverse - __uint_as_float(high & 0xFFFF0000u);
  const std::uint32_t low = device::group::pack_bf16(rest, rest);
  std::uint32_t out[2];
  KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
    std::uint32_t nibbles[2];
    KVCTS_UNROLL for (int two = 0; two < 2; ++two) {
      const int at = half * 4 + two * 2;
      std::uint32_t codes[2];
      KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
        const std::uint32_t y = device::fma2(m.w[at + i], high, device::mul2(m.w[at + i], low));
        const std::uint32_t line1 = device::fma2(y, 0x40004000u, 0x437C437Cu);
        const std::uint32_t line2 = device::fma2(y, 0x3F803F80u, 0x43804380u);
        codes[i] = device::min2(device::min2(line1, line2), 0x43834383u);
      }
      nibbles[two] = select_bits<0x07070707u>(__byte_perm(codes[0], codes[1], 0x6240),
                                              sign_bytes(x.w[at], x.w[at + 1]));
    }
    const std::uint32_t even = __byte_perm(nibbles[0], nibbles[1], 0x5410);
    const std::uint32_t odd = __byte_perm(nibbles[0], nibbles[1], 0x7632);
    out[half] = select_bits<0x0F0F0F0Fu>(even, odd * 16) ^ 0x44444444u;  // 252 ends in 0x7C
  }
  return make_uint2(out[0], out[1]);
}

// NVFP4 of f32 values, as nvfp4_codes. 1/d in two parts, so that a quotient on a rounding boundary
// is exact and every other one is on its side.
KVCTS_INLINE void turning_nvfp4_codes(const float (&x)[8], std::uint32_t& scale,
                                      std::uint32_t& codes) {
  using G = device::group;
  float d;
  scale = nvfp4_scale(device::block_amax<G, 2>(x, 0.0f), d);
  const float inverse = reciprocal(d);
  const float low = __fmaf_rn(-d, inverse, 1.0f) * inverse;
  std::uint32_t sum = 0u - 0x4AFFFFFCu * 0x11111111u;
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) {
    const float y = fabsf(__fmaf_rn(x[j], inverse, x[j] * low));
    // encode_finite_nvfp4's lines, around 2^23; an infinity and a NaN end at 7.
    const float line1 = y + 8388606.0f;
    const float line2 = __fmaf_rn(y, 0.5f, 8388608.0f);
    sum += __float_as_uint(fminf(fminf(line1, line2), 8388611.0f)) << (4 * j);
  }
  const std::uint32_t even = __byte_perm(word_signs(x[0], x[2]), word_signs(x[4], x[6]), 0x5410);
  const std::uint32_t odd = __byte_perm(word_signs(x[1], x[3]), word_signs(x[5], x[7]), 0x5410);
  codes = sum | (select_bits<0x0F0F0F0Fu>(even, odd) & 0x88888888u);
}

template <class T>
KVCTS_INLINE void store_codes(device::byte* to, const T& x) {
  if constexpr (variant == 7) {
    __stcs(reinterpret_cast<T*>(to), x);
  } else {
    *reinterpret_cast<T*>(to) = x;
  }
}

// The largest and the smallest of the low halves and of the high ones; a NaN is the largest.
KVCTS_INLINE std::uint32_t largest_word(const lane_dims& m) {
  std::uint32_t r = max2_or_nan(m.w[0], m.w[1]);
  KVCTS_UNROLL for (int j = 2; j < 8; ++j) r = max2_or_nan(r, m.w[j]);
  return r;
}
KVCTS_INLINE std::uint32_t smallest_word(const lane_dims& m) {
  std::uint32_t r = device::min2(m.w[0], m.w[1]);
  KVCTS_UNROLL for (int j = 2; j < 8; ++j) r = device::min2(r, m.w[j]);
  return r;
}

// Of a row, what does not rotate: 16 dims a lane in the lower 28 lanes. False, and nothing is
// stored, where not all are finite.
template <latent_record Record>
KVCTS_INLINE bool store_finite_row(device::byte* data, device::byte* scales, lane_dims x,
                                   bool wide) {
  const std::uint32_t lane = device::group::lane();
  lane_dims m;
  KVCTS_UNROLL for (int j = 0; j < 8; ++j) m.w[j] = device::abs2(x.w[j]);
  std::uint32_t amax = largest_word(m);
  amax = max2_or_nan(amax, __byte_perm(amax, 0, 0x1032));
  // All the rotation by zero changes in finite numbers are signs of zeros.
  const bool zero = ((smallest_word(m) - 0x00010001u) & 0x80008000u) != 0;
  if (__any_sync(0xFFFFFFFFu, zero || amax >= 0x7F800000u)) {
    if (!__all_sync(0xFFFFFFFFu, amax < 0x7F800000u)) return false;
    KVCTS_UNROLL for (int j = 0; j < 8; ++j) {
      x.w[j] = device::fma2(__byte_perm(x.w[j], 0, 0x1032), 0x00008000u, x.w[j]);
    }
  }
  const bool still = lane < 28;
  if constexpr (Record == latent_record::v41_nvfp4) {
    float d;
    const std::uint32_t scale = nvfp4_scale(__uint_as_float(amax << 16), d);
    const uint2 codes = encode_finite_nvfp4(x, m, reciprocal(d));
    if (still) {
      store_codes(data + lane * 8, codes);
      scales[lane] = static_cast<device::byte>(scale);
    }
  } else {
    amax = device::max2(amax, device::key_amax_floor * 0x10001u);
    amax = device::max2(amax, device::group::shuffle_xor<1>(amax));
    const device::two_scales two = device::key_scales(amax);
    std::uint32_t out[4];
    KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
      std::uint32_t pair[2];
      KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
        const std::uint32_t y = device::mul2(x.w[2 * i + j], two.factors);  // at most 448
        const float even = device::bf16_even<device::group>(y);
        const float odd = device::bf16_odd<device::group>(y);
#ifdef KVCTS_E4M3_INSTRUCTION
        pair[j] = device::e4m3x2(even, odd);
#else
        pair[j] =
            device::e4m3_code<device::group>(even) | (device::e4m3_code<device::group>(odd) << 8);
#endif
      }
      out[i] = __byte_perm(pair[0], pair[1], 0x5410);
    }
    if (still) {
      device::byte* to = data + lane * 16;
      if (wide) {
        store_codes(to, make_uint4(out[0], out[1], out[2], out[3]));
      } else {
        device::store_8_bytes(to, out[0], out[1]);
        device::store_8_bytes(to + 8, out[2], out[3]);
      }
      if (lane % 2 == 0) scales[lane / 2] = static_cast<device::byte>(two.scales);
    }
  }
  return true;
}

template <latent_record Record>
KVCTS_INLINE void store_turning(const device::record_place& to, bool stored, std::uint32_t eighth,
                                const device::words4& in, const loaded_angles& turned,
                                bool is_f32) {
  using G = device::group;
  if constexpr (Record != latent_record::v41_nvfp4) {
    store_turning_dims<Record>(to, stored, eighth, in, numbers_of(turned, is_f32));
  } else {
    float x[8];
    device::unpack<G>(in, x);
    device::rotate<G, device::rope_form::store>(x, numbers_of(turned, is_f32));
    std::uint32_t scale;
    std::uint32_t codes;
    turning_nvfp4_codes(x, scale, codes);
    if (!stored) return;
    device::store_4_bytes(to.data + 224 + eighth * 4, codes);
    if (eighth % 2 == 0) to.scales[28 + eighth / 2] = static_cast<device::byte>(scale);
  }
}

// Angles come once half of the rows have left their registers.
constexpr bool late_angles = variant != 2;
constexpr int most_rows = variant == 4 ? 2 : 4;  // a warp
constexpr int variant_warps = variant == 5 ? 2 : variant == 6 ? 8 : 4;
// A warp's registers: 64 keep 32 warps a multiprocessor, 48 40 of them.
constexpr int least_blocks = (variant == 4 ? 40 : 32) / variant_warps;

// What a warp knows of its rows: lane / 8 is a row, all eight lanes of it know the same.
struct warp_rows {
  std::int64_t first;
  int count;
  device::group_row at;
  bool stored;
};

template <bool Groups, int MostRows>
KVCTS_INLINE bool find_rows(const rope_quant_insert_arguments& a, int rows_a_warp, warp_rows& to) {
  const auto warp = static_cast<std::uint32_t>(threadIdx.x / 32);
  to.first = (static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / 32) + warp) * rows_a_warp;
  if (to.first >= a.at.rows) return false;
  const std::int64_t left = a.at.rows - to.first;
  to.count = left < rows_a_warp ? static_cast<int>(left) : rows_a_warp;
  const int my_row = static_cast<int>(device::group::lane() / 8);
  // Rows past the end are the last one.
  const std::int64_t row = to.first + (my_row < to.count ? my_row : to.count - 1);
  const std::int64_t slot = __ldg(reinterpret_cast<const long long*>(a.at.slots + row * 8));
  const std::int64_t position = __ldg(reinterpret_cast<const long long*>(a.at.positions + row * 8));
  to.at = {row, slot, Groups ? position - 1 : position};
  to.stored = my_row < to.count && slot >= 0 && (!Groups || position % 2 == 1);
  return true;
}

template <latent_record Record, bool Groups, int Rows>
__global__ void __launch_bounds__(32 * variant_warps, least_blocks)
    finite_kernel(const __grid_constant__ rope_quant_insert_arguments a, bool wide) {
  wait_for_earlier_kernel();
  using layout = latent_layout<Record>;
  constexpr bool late = late_angles && Rows > 1;
  const std::uint32_t lane = device::group::lane();
  const std::uint32_t eighth = lane % 8;
  warp_rows rows;
  if (!find_rows<Groups, Rows>(a, Rows, rows)) return;
  // Without groups almost every row is stored: its load need not wait for its slot.
  unsigned wanted = 0xFFFFFFFFu;
  if constexpr (Groups) wanted = __ballot_sync(0xFFFFFFFFu, rows.stored);

  const device::byte* latents = a.latent + rows.first * a.latent_row_stride + lane * 32;
  lane_dims in[Rows];
  KVCTS_UNROLL for (int r = 0; r < Rows; ++r) {
    if (Groups && (wanted >> (8 * r) & 1u) == 0) continue;
    const int row = r < rows.count ? r : rows.count - 1;
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      const device::words4 x =
          device::load_16_bytes(latents + row * a.latent_row_stride + half * 16);
      KVCTS_UNROLL for (int j = 0; j < 4; ++j) in[r].w[half * 4 + j] = x.w[j];
    }
  }
  loaded_angles turned = {};
  if (!late && rows.stored) {
    turned = load_angle_words(device::angles_of(a.table, rows.at.position), eighth, a.table.is_f32);
  }

  const device::record_place mine =
      device::place_of_slot(a.cache, rows.at.slot, layout::data_bytes, layout::scale_bytes);
  const unsigned stored_rows = __ballot_sync(0xFFFFFFFFu, rows.stored);
  device::words4 turning = {};
  unsigned others = 0;  // rows of infinities and NaN
  KVCTS_UNROLL for (int r = 0; r < Rows; ++r) {
    if (r == (late ? Rows / 2 : Rows - 1)) {
      // Again, from the L1 cache: earlier it would take registers.
      turning =
          device::load_16_bytes(a.latent + rows.at.row * a.latent_row_stride + 896 + eighth * 16);
      if (late && rows.stored) {
        turned =
            load_angle_words(device::angles_of(a.table, rows.at.position), eighth, a.table.is_f32);
      }
    }
    if ((stored_rows >> (8 * r) & 1u) == 0) continue;
    const bool done =
        store_finite_row<Record>(device::pointer_of_lane(mine.data, 8 * r),
                                 device::pointer_of_lane(mine.scales, 8 * r), in[r], wide);
    if (!done) others |= 1u << r;
  }
  store_turning<Record>(mine, rows.stored, eighth, turning, turned, a.table.is_f32);
#ifndef KVCTS_NO_SLOW
  if (others == 0) return;
#pragma unroll 1
  for (int r = 0; r < Rows; ++r) {
    if ((others >> r & 1u) == 0) continue;
    device::insert_latent<device::group, profile::nvidia, Record, true>(a, rows.first + r);
  }
#endif
}

// Today's form, but that loads of rows wait for no slot, and nothing waits for angles early.
template <latent_record Record, bool Groups>
__global__ void __launch_bounds__(128, 8)
    early_kernel(const __grid_constant__ rope_quant_insert_arguments a, int rows_a_warp) {
  wait_for_earlier_kernel();
  using layout = latent_layout<Record>;
  const std::uint32_t lane = device::group::lane();
  const std::uint32_t eighth = lane % 8;
  warp_rows rows;
  if (!find_rows<Groups, 4>(a, rows_a_warp, rows)) return;
  unsigned wanted = 0xFFFFFFFFu;
  if constexpr (Groups) wanted = __ballot_sync(0xFFFFFFFFu, rows.stored);
  const device::byte* latents = a.latent + rows.first * a.latent_row_stride + lane * 16;
  device::words4 in[4][2];
  KVCTS_UNROLL for (int r = 0; r < 4; ++r) {
    if (r >= rows.count || (Groups && (wanted >> (8 * r) & 1u) == 0)) continue;
    in[r][0] = device::load_16_bytes(latents + r * a.latent_row_stride);
    in[r][1] = device::load_16_bytes(latents + r * a.latent_row_stride + 512);
  }
  const device::words4 turning =
      device::load_16_bytes(a.latent + rows.at.row * a.latent_row_stride + 896 + eighth * 16);
  loaded_angles turned = {};
  if (rows.stored) {
    turned = load_angle_words(device::angles_of(a.table, rows.at.position), eighth, a.table.is_f32);
  }
  const device::record_place mine =
      device::place_of_slot(a.cache, rows.at.slot, layout::data_bytes, layout::scale_bytes);
  const unsigned stored_rows = __ballot_sync(0xFFFFFFFFu, rows.stored);
  KVCTS_UNROLL for (int r = 0; r < 4; ++r) {
    if ((stored_rows >> (8 * r) & 1u) == 0) continue;
    store_still_dims<Record>(device::pointer_of_lane(mine.data, 8 * r),
                             device::pointer_of_lane(mine.scales, 8 * r), in[r]);
  }
  store_turning<Record>(mine, rows.stored, eighth, turning, turned, a.table.is_f32);
}

template <latent_record Record>
void launch_variant(const rope_quant_insert_arguments& a, cudaStream_t stream) {
  constexpr int warps = variant == 1 ? 4 : variant_warps;
  const int rows_a_warp = a.at.rows <= few_rows ? 1 : variant == 1 ? 4 : most_rows;
  const std::int64_t rows_a_block = rows_a_warp * warps;
  const auto blocks = static_cast<unsigned>((a.at.rows + rows_a_block - 1) / rows_a_block);
  const bool groups = a.at.ratio != 1;
  if constexpr (variant == 1) {
    launch_kernel(groups ? early_kernel<Record, true> : early_kernel<Record, false>, blocks, 128,
                  stream, "rope_quant_insert", a, rows_a_warp);
  } else if constexpr (Record != latent_record::v4) {
    const bool wide = is_multiple(a.cache.start, 16) && is_multiple(a.cache.page_stride, 16);
    const auto kernel =
        rows_a_warp == 1
            ? (groups ? finite_kernel<Record, true, 1> : finite_kernel<Record, false, 1>)
            : (groups ? finite_kernel<Record, true, most_rows>
                      : finite_kernel<Record, false, most_rows>);
    launch_kernel(kernel, blocks, 32 * warps, stream, "rope_quant_insert", a, wide);
  }
}

#endif
