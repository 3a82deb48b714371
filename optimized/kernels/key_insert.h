// The indexer key's insert over the group vocabulary: LayerNorm, quantization, record, and the fill
// of the top-k rows.
#pragma once

#include "optimized/arguments/key_insert.h"
#include "optimized/warp/norm.h"
#include "optimized/warp/pages.h"

namespace kvcts::KVCTS_TARGET {

enum class indexer_record : std::uint8_t {
  mxfp4,  // D/2 bytes of E2M1, then D/32 UE8M0
  fp8     // D E4M3, then an f32 scale
};

template <indexer_record Record>
KVCTS_INLINE record_place place_of_key(const indexer_keys& a, std::int64_t slot) {
  const std::int64_t dims = a.norm.dims;
  if constexpr (Record == indexer_record::mxfp4) {
    return place_of_slot(a.cache, slot, dims / 2, dims / 32);
  } else {
    return place_of_slot(a.cache, slot, dims, 4);
  }
}

// Scale exponents + 127 of blocks with these amax, at least 6 * 2^-126 and 1e-4.
constexpr std::uint32_t mxfp4_amax_floor = 0x01C00000;
template <class G>
KVCTS_INLINE typename G::u32 mxfp4_biased(const typename G::f32& amax, profile p) {
  // div.full by 6 is the product with RN(1/6)
  const typename G::f32 q =
      p == profile::nvidia ? amax * 0x1.555556p-3f : amax / G::splat_f32(6.0f);
  return G::min(ceil_log2_biased<G>(q), G::splat(254));
}
constexpr std::uint32_t fp8_amax_floor = 0x38D1B717;
template <class G>
KVCTS_INLINE typename G::u32 fp8_biased(const typename G::f32& amax, bool fnuz) {
  return ceil_log2_biased<G>(amax / G::splat_f32(fnuz ? 224.0f : 448.0f));
}

// --- D = 128: lane l holds dims 4l..4l+3, whatever the launch that the tree is of. Bits of a dim:
// two inside a lane, five of the lane.
template <class G, bool Squares>
KVCTS_INLINE float sum_of_128(const row_part<G, 4>& x, int warps) {
  using f32 = typename G::f32;
  if (warps == 1) {  // 4 a lane
    return G::first(sum_over_lanes<G>(Squares ? squares_in_lane(x) : sum_in_lane(x)));
  }
  if (warps == 2) {  // 2 a lane: bits 1..5 are the tree's lane, bit 6 its warp
    f32 pair[2];
    KVCTS_UNROLL for (int i = 0; i < 2; ++i) {
      const row_part<G, 2> two = {{x.v[2 * i], x.v[2 * i + 1]}};
      pair[i] = sum_from_half<G, 8>(Squares ? squares_in_lane(two) : sum_in_lane(two));
    }
    const f32 sum = pair[0] + pair[1];
    return G::first(sum + G::template shuffle_xor<16>(sum));
  }
  // 1 a lane: bits 0..4 are the tree's lane, bits 5 and 6 its warp. Lane 0's sum is made of those
  // whose first step starts from the lower element.
  f32 one[4];
  KVCTS_UNROLL for (int i = 0; i < 4; ++i) {
    const f32 other = G::template shuffle_xor<4>(x.v[i]);
    one[i] = sum_from_half<G, 2>(Squares ? G::fma(x.v[i], x.v[i], other * other) : x.v[i] + other);
  }
  f32 sum = (one[0] + one[2]) + (one[1] + one[3]);
  sum = sum + G::template shuffle_xor<16>(sum);
  return G::first(sum + G::template shuffle_xor<8>(sum));
}

// What a row's insert reads, all before the first use: the loads overlap.
template <class G>
struct key_row_128 {
  row_part<G, 4> x, weight, bias;
};
template <class G, bool Aligned>
KVCTS_INLINE key_row_128<G> load_key_128(const indexer_keys& a, std::int64_t row) {
  return {load_bf16_part<G, 4, Aligned>(a.k + row * a.k_row_stride),
          load_parameter_part<G, 4, Aligned>(a.weight.data, a.weight.is_f32, 0),
          load_parameter_part<G, 4, Aligned>(a.bias.data, a.bias.is_f32, 0)};
}

template <class G>
KVCTS_INLINE row_part<G, 4> layer_normed_128(const indexer_keys& a, const key_row_128<G>& in,
                                             profile p) {
  row_part<G, 4> x = in.x;
  const float mean = sum_of_128<G, false>(x, a.norm.launch_warps) * a.norm.inverse_width;
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) x.v[j] = x.v[j] + -mean;
  const float r = reciprocal_root(sum_of_128<G, true>(x, a.norm.launch_warps), a.norm, p);
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
    x.v[j] = G::fma(x.v[j] * r, in.weight.v[j], in.bias.v[j]);
  }
  return x;
}

template <class G, indexer_record Record, bool Aligned>
KVCTS_INLINE void insert_key_128(const indexer_keys& a, const key_row_128<G>& in, std::int64_t slot,
                                 profile p) {
  using u32 = typename G::u32;
  constexpr bool mxfp4 = Record == indexer_record::mxfp4;
  const row_part<G, 4> y = layer_normed_128<G>(a, in, p);
  typename G::f32 amax = G::as_f32(G::splat(mxfp4 ? mxfp4_amax_floor : fp8_amax_floor));
  KVCTS_UNROLL for (int j = 0; j < 4; ++j) amax = larger_magnitude<G>(y.v[j], amax);
  const record_place to = place_of_key<Record>(a, slot);
  if constexpr (mxfp4) {
    const u32 biased[1] = {mxfp4_biased<G>(largest_over<G, 8>(amax), p)};
    store_e2m1_part<G, 4, Aligned>(to.data, y, inverse_power_of_biased<G>(biased[0]));
    G::template store_block_bytes<8>(to.scales, biased, 4);
  } else {
    const u32 biased = fp8_biased<G>(largest_over<G, 32>(amax), a.fnuz);
    const typename G::f32 factor = inverse_power_of_biased<G>(biased);
    if (a.fnuz) {
      store_e4m3_part<G, 4, Aligned, e4m3_form::fnuz_unclamped>(to.data, y, factor);
    } else {
      store_e4m3_part<G, 4, Aligned, e4m3_form::unclamped>(to.data, y, factor);
    }
    G::template store_word<Aligned>(to.scales, G::bits(power_of_biased<G>(biased)));
  }
}

// --- Any D, a block of 32 dims at a time.

template <class G>
KVCTS_INLINE typename G::f32 layer_normed(const indexer_keys& a, const unsigned char* row,
                                          std::int64_t at, float mean, const typename G::f32& r) {
  const typename G::f32 x = G::template load_bf16<false>(row + 2 * at, 32) + -mean;
  return G::fma(x * r, load_parameters<G>(a.weight, at, 32), load_parameters<G>(a.bias, at, 32));
}

template <class G, indexer_record Record>
KVCTS_INLINE void insert_any_key(const indexer_keys& a, std::int64_t row, std::int64_t slot,
                                 profile p) {
  using u32 = typename G::u32;
  using f32 = typename G::f32;
  constexpr bool mxfp4 = Record == indexer_record::mxfp4;
  const f32 least = G::as_f32(G::splat(mxfp4 ? mxfp4_amax_floor : fp8_amax_floor));
  const unsigned char* from = a.k + row * a.k_row_stride;
  const float mean = G::first(sum_of_row<G, false>(from, a.norm, 0.0f)) * a.norm.inverse_width;
  const f32 r = reciprocal_root_of_row<G>(from, a.norm, -mean, p);
  const record_place to = place_of_key<Record>(a, slot);
  if constexpr (mxfp4) {
    for (std::int64_t at = 0; at < a.norm.dims; at += 32) {
      const f32 y = layer_normed<G>(a, from, at, mean, r);
      const f32 amax = largest_over<G, 32>(larger_magnitude<G>(y, least));
      const u32 biased[1] = {mxfp4_biased<G>(amax, p)};
      const u32 code = e2m1_code<G>(y * inverse_power_of_biased<G>(biased[0]));
      const u32 pair[1] = {code | (G::template shuffle_xor<1>(code) << 4)};  // of even lanes
      G::template store_block_bytes<2>(to.data + at / 2, pair, 16);
      G::template store_block_bytes<32>(to.scales + at / 32, biased, 1);
    }
  } else {
    f32 amax = least;
    for (std::int64_t at = 0; at < a.norm.dims; at += 32) {
      amax = larger_magnitude<G>(layer_normed<G>(a, from, at, mean, r), amax);
    }
    const u32 biased = fp8_biased<G>(largest_over<G, 32>(amax), a.fnuz);
    const f32 factor = inverse_power_of_biased<G>(biased);
    for (std::int64_t at = 0; at < a.norm.dims; at += 32) {
      const f32 scaled = layer_normed<G>(a, from, at, mean, r) * factor;
      G::store_bytes(to.data + at,
                     a.fnuz ? e4m3_code_of<G, e4m3_form::fnuz_unclamped>(scaled)
                            : e4m3_code_of<G, e4m3_form::unclamped>(scaled),
                     32);
    }
    G::template store_word<false>(to.scales, G::bits(power_of_biased<G>(biased)));
  }
}

// Fast: every access aligned, and D = 128.
template <class G, indexer_record Record, bool Fast>
KVCTS_INLINE void insert_key(const indexer_keys& a, std::int64_t row, profile p) {
  if (row >= a.rows) return;
  const std::int64_t slot = G::template load_i64<Fast>(a.slots + 8 * row);
  if constexpr (Fast) {
    const auto in = load_key_128<G, true>(a, row);
    if (slot >= 0) insert_key_128<G, Record, true>(a, in, slot, p);
    return;
  }
  if (slot < 0) return;
  if (a.norm.dims == 128) {
    insert_key_128<G, Record, false>(a, load_key_128<G, false>(a, row), slot, p);
  } else {
    insert_any_key<G, Record>(a, row, slot, p);
  }
}

// -1 in the columns of one of `parts` equal shares of a row.
template <class G>
KVCTS_INLINE void fill_topk_part(const topk_rows& a, std::int64_t row, int part, int parts) {
  unsigned char* to = a.start + row * a.row_stride;
  if (reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
    const std::int64_t share = (a.columns + parts - 1) / parts;
    const std::int64_t first = part * share;
    const std::int64_t count = a.columns - first < share ? a.columns - first : share;
    if (count > 0) G::fill_words(to + 4 * first, count, 0xFFFFFFFFu);
    return;
  }
  if (part > 0) return;
  for (std::int64_t at = 0; at < 4 * a.columns; at += 32) {
    G::store_bytes(to + at, G::splat(0xFF), 4 * a.columns - at);
  }
}
// -1 in all columns.
template <class G>
KVCTS_INLINE void fill_topk_row(const topk_rows& a, std::int64_t row) {
  fill_topk_part<G>(a, row, 0, 1);
}

}  // namespace kvcts::KVCTS_TARGET
