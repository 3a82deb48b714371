// dequantize_and_gather_k_cache over the group vocabulary: docs/kernels.md.
#pragma once

#include "optimized/arguments/dequantize_and_gather_k_cache.h"
#include "optimized/warp/group.h"
#include "optimized/warp/pages.h"

namespace kvcts::KVCTS_TARGET {

// A record of 584 (E4M3, its last 64 dims bf16), 528 (E4M3) or 288 (E2M1) bytes as two halves of
// 256 dims, 8 dims a lane.
template <int Bytes>
struct gathered_record {
  static_assert(Bytes == 584 || Bytes == 528 || Bytes == 288);
  static constexpr bool has_tail = Bytes == 584;
  static constexpr bool is_fp4 = Bytes == 288;
  static constexpr int scale_bytes = has_tail ? 8 : is_fp4 ? 32 : 16;
  static constexpr int data_bytes = Bytes - scale_bytes;
  static constexpr int lanes_per_block = has_tail ? 8 : is_fp4 ? 2 : 4;  // 64, 16 or 32 dims
  static constexpr int blocks_a_half = 32 / lanes_per_block;
  static constexpr int words = is_fp4 ? 1 : 2;  // of codes, a lane
};

// A UE8M0 byte as a factor. nvidia: 2^(byte-127), 0 for 0 and +infinity for 255, which are the
// exponent field's own meanings; ieee: 2^-127 for 0 and NaN for 255.
template <class G>
KVCTS_INLINE typename G::f32 factor_of_byte(const typename G::u32& byte, bool ieee) {
  typename G::u32 factor = byte << 23;
  if (ieee) {
    factor = G::select(byte == 0u, G::splat(0x00400000u), factor);
    factor = G::select(byte == 255u, G::splat(0x7FFFFFFFu), factor);
  }
  return G::as_f32(factor);
}

// 8 dims a lane, bf16(value * scale).
template <class G, int Bytes, bool Fnuz>
KVCTS_INLINE typename G::bf16x8 dequantized(
    const typename G::template words<gathered_record<Bytes>::words>& codes,
    const typename G::f32& scale) {
  using f32 = typename G::f32;
  typename G::bf16x8 out;
  if constexpr (gathered_record<Bytes>::is_fp4) {
    KVCTS_UNROLL for (int j = 0; j < 4; ++j) {
      const f32 even = e2m1_number<G>(codes.w[0] >> (8 * j));
      const f32 odd = e2m1_number<G>(codes.w[0] >> (8 * j + 4));
      out.w[j] = G::pack_bf16(even * scale, odd * scale);
    }
  } else {
    KVCTS_UNROLL for (int j = 0; j < 2; ++j) {
      f32 x[4];
      e4m3_numbers<G, Fnuz>(codes.w[j], x);
      out.w[2 * j] = G::pack_bf16(x[0] * scale, x[1] * scale);
      out.w[2 * j + 1] = G::pack_bf16(x[2] * scale, x[3] * scale);
    }
  }
  return out;
}

// A position's record in a request's pages, given its row of the table.
template <class G, int Bytes, bool Aligned>
KVCTS_INLINE record_place gathered_place(const dequantize_and_gather_k_cache_arguments& a,
                                         const unsigned char* pages_of_request,
                                         std::int32_t position) {
  using record = gathered_record<Bytes>;
  const std::int64_t column = page_of_position(a.cache, position);
  const std::int64_t page = G::template load_i32<Aligned>(pages_of_request + column * 4);
  const std::int64_t in_page = position - column * a.cache.block_size;
  unsigned char* start = a.cache.start + page * a.cache.page_stride;
  return {start + in_page * record::data_bytes,
          start + a.cache.block_size * record::data_bytes + in_page * record::scale_bytes};
}

// Tokens [i, i + Rows) of those that the request gathers, as far as i + r < last. `position` is
// token i's.
template <class G, int Bytes, bool Fnuz, bool Aligned, int Rows>
KVCTS_INLINE void gather_key_rows(const dequantize_and_gather_k_cache_arguments& a, bool ieee,
                                  std::int64_t request, std::int32_t i, std::int32_t last,
                                  std::int32_t position) {
  using record = gathered_record<Bytes>;
  constexpr int words = record::words;
  const unsigned char* pages_of_request = a.table.start + request * a.table.row_stride;
  unsigned char* out = a.out + request * a.out_request_stride + i * a.out_row_stride;

  const unsigned char* data[Rows];
  typename G::template words<words> codes[Rows][2];
  typename G::u32 scales[Rows][2];
  KVCTS_UNROLL for (int r = 0; r < Rows; ++r) {
    if (i + r >= last) break;
    const record_place place = gathered_place<G, Bytes, Aligned>(a, pages_of_request, position + r);
    data[r] = place.data;
    const unsigned char* scale = place.scales;
    codes[r][0] = G::template load_words<words, 32, Aligned>(data[r], 0, 1);
    scales[r][0] = G::template load_block_bytes<record::lanes_per_block>(scale);
    if constexpr (record::has_tail) {
      // Lanes 0..23; the last of the 8 scale bytes is a pad.
      codes[r][1] = G::template load_words<words, 8, Aligned>(data[r] + 256, 64, 3);
    } else {
      codes[r][1] = G::template load_words<words, 32, Aligned>(data[r] + words * 128, 0, 1);
    }
    scales[r][1] =
        G::template load_block_bytes<record::lanes_per_block>(scale + record::blocks_a_half);
  }
  KVCTS_UNROLL for (int r = 0; r < Rows; ++r) {
    if (i + r >= last) break;
    unsigned char* to = out + r * a.out_row_stride;
    KVCTS_UNROLL for (int half = 0; half < 2; ++half) {
      typename G::f32 scale;
      if constexpr (record::is_fp4) {
        scale = e4m3_number<G, false>(scales[r][half] << 24);
      } else {
        scale = factor_of_byte<G>(scales[r][half], ieee);
      }
      const auto x = dequantized<G, Bytes, Fnuz>(codes[r][half], scale);
      if (record::has_tail && half == 1) {
        G::template store_words<4, 8, Aligned>(to + 512, 128, 3, x);
        G::template copy_bytes<128, Aligned>(to + 896, data[r] + 448);
      } else {
        G::template store_words<4, 32, Aligned>(to + half * 512, 0, 1, x);
      }
    }
  }
}

// A share of a request: row = request * 2^share_shift + share. gather(request, i, last, position)
// for every Rows tokens, as gather_key_rows takes them.
template <class G, bool Aligned, int Rows, class Gather>
KVCTS_INLINE void for_rows_of_share(const dequantize_and_gather_k_cache_arguments& a,
                                    std::int64_t row, const Gather& gather) {
  const std::int64_t request = row >> a.share_shift;
  const std::int64_t share = row - (request << a.share_shift);
  const std::int64_t seq_len = G::template load_i32<Aligned>(a.seq_lens + request * 4);
  const std::int64_t tokens = a.gather_lens == nullptr
                                  ? seq_len
                                  : G::template load_i32<Aligned>(a.gather_lens + request * 4);
  if (tokens <= 0) return;
  const auto last = static_cast<std::int32_t>(tokens * (share + 1) >> a.share_shift);
  const auto before = static_cast<std::int32_t>(seq_len - tokens);
  for (auto i = static_cast<std::int32_t>(tokens * share >> a.share_shift); i < last; i += Rows) {
    gather(request, i, last, before + i);
  }
}
template <class G, int Bytes, bool Fnuz, bool Aligned, int Rows>
KVCTS_INLINE void gather_key_share(const dequantize_and_gather_k_cache_arguments& a, bool ieee,
                                   std::int64_t row) {
  for_rows_of_share<G, Aligned, Rows>(
      a, row,
      [&](std::int64_t request, std::int32_t i, std::int32_t last, std::int32_t position)
          KVCTS_INLINE_LAMBDA {
            gather_key_rows<G, Bytes, Fnuz, Aligned, Rows>(a, ieee, request, i, last, position);
          });
}

}  // namespace kvcts::KVCTS_TARGET
