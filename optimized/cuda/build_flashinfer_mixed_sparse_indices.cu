#include "optimized/cuda/rows.h"
#include "optimized/kernels/build_flashinfer_mixed_sparse_indices.h"

namespace kvcts {
namespace {

using arguments = build_flashinfer_mixed_sparse_indices_arguments;
using G = device::group;

// Measured constant: below so many tokens a step of 128 columns has a warp.
constexpr std::int64_t few_rows = 2048;
// Of 4 warps, on a multiprocessor at once, one row a warp.
constexpr int blocks_at_once = 7;
constexpr int most_steps = 4;  // of the compressed part, held at once

template <int Words, bool Aligned>
struct sparse_body {
  static __device__ __forceinline__ void run(const arguments& a, std::int64_t row) {
    device::sparse_row<G, Words, Aligned>(a, row);
  }
};

// Columns of the compressed part, four a lane, step by step: they wait for nothing but the token.
template <int Steps>
struct held_columns {
  G::words<4> step[Steps];
};
__device__ __forceinline__ int column_of_lane(int step) {
  return step * 128 + static_cast<int>(G::lane()) * 4;
}
template <int Steps>
__device__ __forceinline__ held_columns<Steps> load_compressed(const arguments& a,
                                                               std::int64_t token, int first) {
  const bool decode = token < a.decode_tokens;
  const index_matrix& m = decode ? a.decode_compressed : a.prefill_topk;
  const std::int64_t columns = decode ? a.decode_columns : a.prefill_columns;
  const unsigned char* from =
      m.start + (decode ? token : token - a.decode_tokens) * m.row_stride + first * 512;
  held_columns<Steps> r;
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    r.step[i] = {{device::no_index, device::no_index, device::no_index, device::no_index}};
    if (column_of_lane(first + i) < columns) {
      r.step[i] = G::load_words<4, 32, true>(from + 512 * i, 0, 1);
    }
  }
  return r;
}
template <int Steps>
__device__ __forceinline__ std::uint32_t live_columns(const held_columns<Steps>& x) {
  std::uint32_t found = 0;
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) found += device::live_index<G>(x.step[i].w[j]);
  }
  return device::total<G>(found);
}
template <int Steps, class Map>
__device__ __forceinline__ void store_compressed(const arguments& a, std::int64_t token, int first,
                                                 held_columns<Steps>& x, const Map& map) {
  unsigned char* to =
      a.indices + (token * (a.window_columns + a.compressed_columns) + a.window_columns) * 4;
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x.step[i].w[j] =
          map(static_cast<std::uint32_t>(column_of_lane(first + i) + j), x.step[i].w[j]);
    }
    if (column_of_lane(first + i) < a.compressed_columns) {
      G::store_words<4, 32, true>(to + (first + i) * 512, 0, 1, x.step[i]);
    }
    G::converge();  // or the steps' pages would take registers together
  }
}

// Columns from step `first` on of a token's compressed part.
template <int Steps>
__device__ __forceinline__ void map_compressed(const arguments& a, std::int64_t token,
                                               std::int64_t request, std::uint32_t count, int first,
                                               held_columns<Steps>& x) {
  const sparse_paging& pages = a.compressed_pages;
  if (token < a.decode_tokens && !a.decode_is_local) {
    store_compressed<Steps>(a, token, first, x, [&](std::uint32_t, std::uint32_t slot) {
      return device::remapped<G>(slot, pages.block, pages.span);
    });
    return;
  }
  const unsigned char* table = pages.table.start + request * pages.table.row_stride;
  store_compressed<Steps>(a, token, first, x, [&](std::uint32_t column, std::uint32_t entry) {
    return device::slot_of_entry<G, true, true>(
        table, G::select(column < count, entry, G::splat(device::no_index)), pages.block,
        pages.span);
  });
}
// Of a decode token; x: all its columns.
__device__ __forceinline__ void store_decode_len(const arguments& a, std::int64_t token,
                                                 const held_columns<most_steps>& x) {
  std::int64_t len = a.decode_columns;
  if (a.decode_is_local) {
    const bool valid = a.decode_columns > 0 && a.decode_is_valid[token] != 0;
    const std::uint32_t found = live_columns<most_steps>(x);
    len = valid ? found : 0;
  } else if (a.decode_lens != nullptr) {
    len = G::load_i32<true>(a.decode_lens + token * 4);
  }
  device::store_scalar<G, true>(a.lens + token * 4, a.window_columns + len);
}

__device__ __forceinline__ unsigned char* row_of(const arguments& a, std::int64_t token) {
  return a.indices + token * (a.window_columns + a.compressed_columns) * 4;
}

// A warp a row; the window's columns come last, for they would hold more registers before.
__global__ void __launch_bounds__(128, blocks_at_once)
    many_rows_kernel(const __grid_constant__ arguments a) {
  wait_for_earlier_kernel();
  const std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (token >= a.tokens) return;
  auto x = load_compressed<most_steps>(a, token, 0);
  if (token < a.decode_tokens) {
    const std::int64_t request =
        a.decode_is_local ? G::load_i32<true>(a.token_to_request + token * 4) : 0;
    store_decode_len(a, token, x);
    map_compressed<most_steps>(a, token, request, 0x10000u, 0, x);
    device::sparse_decode_window<G, 4, true, 1>(a, token, row_of(a, token));
    return;
  }
  const auto at = device::prefill_token_of<G, true>(a, token);
  device::store_scalar<G, true>(a.lens + token * 4, a.window_columns + at.topk);
  map_compressed<most_steps>(a, token, at.request, device::columns_left(at.topk), 0, x);
  device::sparse_prefill_window<G, 4, true, 1>(a, at, row_of(a, token));
}

// A block a row. Warps of the compressed part have a step each; one more has the window, and the
// last the length.
__global__ void __launch_bounds__(32 * (most_steps + 2))
    few_rows_kernel(const __grid_constant__ arguments a) {
  wait_for_earlier_kernel();
  const std::int64_t token = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const bool decode = token < a.decode_tokens;
  if (warp < most_steps) {
    if (warp * 128 >= a.compressed_columns) return;
    auto x = load_compressed<1>(a, token, warp);
    std::int64_t request = 0;
    std::uint32_t count = 0x10000u;
    if (!decode) {
      const auto at = device::prefill_token_of<G, true>(a, token);
      request = at.request;
      count = device::columns_left(at.topk);
    } else if (a.decode_is_local) {
      request = G::load_i32<true>(a.token_to_request + token * 4);
    }
    map_compressed<1>(a, token, request, count, warp, x);
  } else if (warp == most_steps) {
    if (decode) {
      device::sparse_decode_window<G, 4, true, 1>(a, token, row_of(a, token));
    } else {
      const auto at = device::prefill_token_of<G, true>(a, token);
      device::sparse_prefill_window<G, 4, true, 1>(a, at, row_of(a, token));
    }
  } else if (decode) {
    store_decode_len(a, token, load_compressed<most_steps>(a, token, 0));
  } else {
    const auto at = device::prefill_token_of<G, true>(a, token);
    device::store_scalar<G, true>(a.lens + token * 4, a.window_columns + at.topk);
  }
}

// Rows whose compressed part a warp holds, in whole fours; the entries looked at are columns of it.
bool is_held(const arguments& a) {
  return a.compressed_columns <= most_steps * 128 && a.decode_columns <= a.compressed_columns &&
         a.prefill_columns <= a.compressed_columns && a.decode_columns % 4 == 0 &&
         a.prefill_columns % 4 == 0 && a.tokens <= largest_grid;
}

// Rows of indices begin at multiples of `bytes`, everything else at multiples of 4.
bool is_aligned(const arguments& a, std::int64_t bytes) {
  return is_multiple(a.decode_window, bytes) && is_multiple(a.decode_compressed, bytes) &&
         is_multiple(a.prefill_topk, bytes) && is_multiple(a.indices, bytes) &&
         is_multiple(a.window_columns * 4, bytes) &&  // and so the rows, in whole fours behind
         is_multiple(a.window_pages.table, 4) && is_multiple(a.compressed_pages.table, 4) &&
         is_multiple(a.decode_lens, 4) && is_multiple(a.starts, 4) && is_multiple(a.seq_lens, 4) &&
         is_multiple(a.token_to_request, 4) && is_multiple(a.replay_start, 4) &&
         is_multiple(a.lens, 4);
}

}  // namespace

void launch_build_flashinfer_mixed_sparse_indices(const arguments& a, profile /*p*/,
                                                  cudaStream_t stream) {
  constexpr auto name = "build_flashinfer_mixed_sparse_indices";
  if (a.tokens == 0) return;
  if (is_aligned(a, 16) && is_held(a)) {
    const auto tokens = static_cast<unsigned>(a.tokens);
    if (a.tokens < few_rows) {
      launch_kernel(few_rows_kernel, tokens, 32 * (most_steps + 2), stream, name, a);
    } else {
      launch_kernel(many_rows_kernel, (tokens + 3) / 4, 128, stream, name, a);
    }
  } else if (is_aligned(a, 16)) {
    launch_rows<sparse_body<4, true>>(a, a.tokens, stream, name);
  } else if (is_aligned(a, 4)) {
    launch_rows<sparse_body<1, true>>(a, a.tokens, stream, name);
  } else {
    launch_rows<sparse_body<1, false>>(a, a.tokens, stream, name);
  }
}

}  // namespace kvcts
