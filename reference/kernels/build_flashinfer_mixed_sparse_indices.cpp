#include "reference/kernels/build_flashinfer_mixed_sparse_indices.h"

#include <algorithm>

#include "reference/kernels/index_rows.h"

namespace kvcts {
namespace {

// A paged KV: its table, tokens a page, and the ids a page takes (more where pages are packed with
// other data).
struct paging {
  const tensor_view& table;
  std::int64_t block_size, span;
};

struct batch {
  const call& c;
  const Rules& rules;
  paging swa, compressed;
  const tensor_view& indices;  // [T, W + P] i32
  const tensor_view& lens;     // [T] i32
  std::int64_t window_columns;
};

std::int64_t remapped(const batch& b, const paging& p, std::int64_t slot) {
  return b.rules.remap_index(slot, p.block_size, p.span);
}

std::int64_t global_id(const batch& b, const paging& p, std::int64_t request, std::int64_t local) {
  return remapped(b, p, slot_of_local(b.rules, p.table, request, local, p.block_size));
}

// Sets column `c` of the compressed part.
void set_compressed(const batch& b, std::int64_t token, std::int64_t column, std::int64_t id) {
  set_index(b.indices, token, b.window_columns + column, id);
}

void decode_token(const batch& b, std::int64_t token) {
  const tensor_view& swa = b.c.tensor("decode_swa_indices");              // [Td, W] i32
  const tensor_view* compressed = b.c.find("decode_compressed_indices");  // [Td, C] i32
  const tensor_view* given_lens = b.c.find("decode_compressed_topk_lens");
  const std::int64_t request = index_at(b.c.tensor("token_to_req_indices"), token);
  const std::int64_t width = compressed == nullptr ? 0 : compressed->dim(1);
  const bool local = b.c.integer_or("decode_compressed_indices_are_local", 0) != 0;

  for (std::int64_t i = 0; i < b.window_columns; ++i) {
    set_index(b.indices, token, i, remapped(b, b.swa, index_at(swa, token, i)));
  }
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < b.indices.dim(1) - b.window_columns; ++i) {
    const std::int64_t index = i < width ? index_at(*compressed, token, i) : -1;
    if (b.rules.index_is_live(index)) ++found;
    set_compressed(
        b, token, i,
        local ? global_id(b, b.compressed, request, index) : remapped(b, b.compressed, index));
  }
  std::int64_t len = width;
  if (local) {
    const bool valid =
        width > 0 && (b.rules.count_padding ||
                      load<std::uint8_t>(b.c.tensor("decode_is_valid_token").element(token)) != 0);
    len = valid ? found : 0;
  } else if (given_lens != nullptr) {
    len = index_at(*given_lens, token);
  }
  set_index(b.lens, token, b.window_columns + len);
}

void prefill_token(const batch& b, std::int64_t token, std::int64_t prefill_row) {
  const tensor_view& topk_indices = b.c.tensor("prefill_topk_indices");  // [Tp, K] i32
  const tensor_view& starts = b.c.tensor("query_start_loc");             // [R+1] i32
  const std::int64_t request = index_at(b.c.tensor("token_to_req_indices"), token);
  const std::int64_t query_start = index_at(starts, request);
  const std::int64_t query_len = index_at(starts, request + 1) - query_start;
  const std::int64_t position =
      index_at(b.c.tensor("seq_lens"), request) - query_len + (token - query_start);

  const std::int64_t lowest =
      std::max(std::int64_t{0}, index_at(b.c.tensor("replay_start"), request));
  const std::int64_t first = b.rules.window_start(position, b.c.integer("window_size"), lowest);
  for (std::int64_t i = 0; i < b.window_columns; ++i) {
    const bool live = first + i <= position;
    set_index(b.indices, token, i, live ? global_id(b, b.swa, request, first + i) : -1);
  }
  const std::int64_t topk_len =
      b.rules.topk_length(position, b.c.integer("compress_ratio"), b.c.integer("topk"));
  const std::int64_t given = std::min(topk_len, topk_indices.dim(1));
  for (std::int64_t i = 0; i < b.indices.dim(1) - b.window_columns; ++i) {
    const std::int64_t index = i < given ? index_at(topk_indices, prefill_row, i) : -1;
    set_compressed(b, token, i, global_id(b, b.compressed, request, index));
  }
  set_index(b.lens, token, b.window_columns + topk_len);
}

}  // namespace

void build_flashinfer_mixed_sparse_indices(const call& c, const Rules& rules) {
  const tensor_view& swa_table = c.tensor("swa_block_table");              // [R, max blocks] i32
  const tensor_view* compressed_table = c.find("compressed_block_table");  // [R, max blocks] i32
  const std::int64_t swa_size = c.integer("swa_block_size");
  const std::int64_t compressed_size = c.integer("compressed_block_size");
  const std::int64_t decode_tokens = c.tensor("decode_swa_indices").dim(0);
  const batch b = {
      c,
      rules,
      {swa_table, swa_size, c.integer_or("swa_block_span", swa_size)},
      {compressed_table == nullptr ? swa_table : *compressed_table, compressed_size,
       c.integer_or("compressed_block_span", compressed_size)},
      c.tensor("sparse_indices"),
      c.tensor("sparse_topk_lens"),
      c.tensor("decode_swa_indices").dim(1),
  };
  for (std::int64_t t = 0; t < b.indices.dim(0); ++t) {
    if (t < decode_tokens) {
      decode_token(b, t);
    } else {
      prefill_token(b, t, t - decode_tokens);
    }
  }
}

}  // namespace kvcts
