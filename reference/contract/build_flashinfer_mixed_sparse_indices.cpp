#include <algorithm>

#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

struct paging {
  std::string_view table;
  std::int64_t block_size, span;
};

void check_remapped(const call& c, std::string_view argument, std::int64_t token, std::int64_t slot,
                    const paging& p) {
  if (slot < 0) return;
  check_id(c, argument, "slot " + std::to_string(slot) + " of token " + std::to_string(token),
           slot / p.block_size * p.span + slot % p.block_size);
}

void check_decode(const call& c, std::int64_t token, const paging& swa, const paging& compressed) {
  const tensor_view& window = c.tensor("decode_swa_indices");
  for (std::int64_t i = 0; i < window.dim(1); ++i) {
    check_remapped(c, "decode_swa_indices", token, integer_at(window, token, i), swa);
  }
  const tensor_view* given = c.find("decode_compressed_indices");
  if (given == nullptr) return;
  const bool local = c.integer("decode_compressed_indices_are_local") != 0;
  const std::int64_t request = integer_at(c.tensor("token_to_req_indices"), token);
  for (std::int64_t i = 0; i < given->dim(1); ++i) {
    const std::int64_t index = integer_at(*given, token, i);
    if (index < 0) continue;
    if (!local) {
      check_remapped(c, "decode_compressed_indices", token, index, compressed);
      continue;
    }
    check_request(c, "token_to_req_indices", token, request, compressed.table);
    check_entry(c, "decode_compressed_indices", token, index, compressed.table, request,
                compressed.block_size, compressed.span);
  }
}

void check_prefill(const call& c, std::int64_t token, std::int64_t row, const paging& swa,
                   const paging& compressed) {
  const tensor_view& starts = c.tensor("query_start_loc");
  const std::int64_t request = integer_at(c.tensor("token_to_req_indices"), token);
  check_request(c, "token_to_req_indices", token, request, "swa_block_table");
  const std::int64_t start = integer_at(starts, request);
  const std::int64_t queries = integer_at(starts, request + 1) - start;
  const std::int64_t position =
      integer_at(c.tensor("seq_lens"), request) - queries + (token - start);
  if (position < 0) {
    reject(c, "seq_lens",
           "token " + std::to_string(token) + " of request " + std::to_string(request) +
               " has position " + std::to_string(position) + ", must not be negative");
  }
  const std::int64_t first = std::max({position - c.integer("window_size") + 1, std::int64_t{0},
                                       integer_at(c.tensor("replay_start"), request)});
  for (std::int64_t p = first; p <= position; ++p) {
    check_entry(c, "seq_lens", token, p, swa.table, request, swa.block_size, swa.span);
  }
  const tensor_view& topk = c.tensor("prefill_topk_indices");
  const std::int64_t ratio = c.integer("compress_ratio");
  const std::int64_t wanted =
      ratio > 0 ? std::min((position + 1) / ratio, c.integer("topk")) : std::int64_t{0};
  for (std::int64_t i = 0; i < std::min(wanted, topk.dim(1)); ++i) {
    const std::int64_t index = integer_at(topk, row, i);
    if (index < 0) continue;
    check_request(c, "token_to_req_indices", token, request, compressed.table);
    check_entry(c, "prefill_topk_indices", token, index, compressed.table, request,
                compressed.block_size, compressed.span);
  }
}

void check_indices(const call& c) {
  const std::string_view compressed_table =
      c.find("compressed_block_table") != nullptr ? "compressed_block_table" : "swa_block_table";
  const paging swa = {"swa_block_table", c.integer("swa_block_size"), c.integer("swa_block_span")};
  const paging compressed = {compressed_table, c.integer("compressed_block_size"),
                             c.integer("compressed_block_span")};
  const std::int64_t decode = c.tensor("decode_swa_indices").dim(0);
  const std::int64_t prefill = c.tensor("prefill_topk_indices").dim(0);
  for (std::int64_t t = 0; t < decode; ++t) check_decode(c, t, swa, compressed);
  for (std::int64_t i = 0; i < prefill; ++i) check_prefill(c, decode + i, i, swa, compressed);
}

}  // namespace

const kernel_contract& build_flashinfer_mixed_sparse_indices_contract() {
  static const kernel_contract contract = {
      .name = "build_flashinfer_mixed_sparse_indices",
      .family = "DeepSeek V4.1",
      .summary =
          "Builds the FlashInfer sparse-index matrix of a batch whose decode tokens come "
          "first.",
      .arguments =
          {
              {.name = "decode_swa_indices",
               .dtypes = {dtype::i32},
               .shape = "Td, W",
               .axes = "decode token, column",
               .strides = stride_rule::rows,
               .meaning = "window slots of the decode tokens"},
              {.name = "decode_compressed_indices",
               .dtypes = {dtype::i32},
               .shape = "Td, C",
               .axes = "decode token, column",
               .strides = stride_rule::rows,
               .meaning = "compressed slots, or entries of the request, of the decode tokens",
               .optional = true},
              {.name = "decode_compressed_topk_lens",
               .dtypes = {dtype::i32},
               .shape = "decode_lens",
               .axes = "decode token",
               .meaning = "their number; not used where they are local",
               .optional = true},
              {.name = "prefill_topk_indices",
               .dtypes = {dtype::i32},
               .shape = "Tp, K",
               .axes = "prefill token, column",
               .strides = stride_rule::rows,
               .meaning = "compressed entries of the request; negative: none"},
              {.name = "query_start_loc",
               .dtypes = {dtype::i32},
               .shape = "R + 1",
               .axes = "request",
               .meaning = "first token of each request, counted over the whole batch"},
              {.name = "seq_lens",
               .dtypes = {dtype::i32},
               .shape = "R",
               .axes = "request",
               .meaning = "tokens of each request, the queries included"},
              {.name = "token_to_req_indices",
               .dtypes = {dtype::i32},
               .shape = "tokens",
               .axes = "token",
               .meaning = "request of each token"},
              {.name = "swa_block_table",
               .dtypes = {dtype::i32},
               .shape = "R, swa_columns",
               .axes = "request, column",
               .strides = stride_rule::rows,
               .meaning = "pages of the window KV; -1 gives -1"},
              {.name = "compressed_block_table",
               .dtypes = {dtype::i32},
               .shape = "R, compressed_columns",
               .axes = "request, column",
               .strides = stride_rule::rows,
               .meaning = "pages of the compressed KV; absent: swa_block_table",
               .optional = true},
              {.name = "decode_is_valid_token",
               .dtypes = {dtype::boolean},
               .shape = "valid_tokens",
               .axes = "decode token",
               .meaning = "0 for tokens that only pad the batch; used where indices are local",
               .optional = true},
              {.name = "replay_start",
               .dtypes = {dtype::i32},
               .shape = "R",
               .axes = "request",
               .meaning = "lowest position whose window KV exists"},
              {.name = "sparse_indices",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "Td + Tp, W + ceil(max(topk, C), 4)",
               .axes = "token, column",
               .meaning = "W window ids, then the compressed ids; -1: none"},
              {.name = "sparse_topk_lens",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "Td + Tp",
               .axes = "token",
               .meaning = "W and the number of compressed ids"},
          },
      .attributes =
          {
              {.name = "swa_block_size",
               .kind = attribute_kind::integer,
               .meaning = "entries a page of the window KV"},
              {.name = "compressed_block_size",
               .kind = attribute_kind::integer,
               .meaning = "entries a page of the compressed KV"},
              {.name = "window_size",
               .kind = attribute_kind::integer,
               .meaning = "positions of the sliding window"},
              {.name = "compress_ratio",
               .kind = attribute_kind::integer,
               .meaning = "tokens a compressed entry; 0: prefill tokens have none"},
              {.name = "topk",
               .kind = attribute_kind::integer,
               .meaning = "most compressed entries of a prefill token"},
              {.name = "decode_compressed_indices_are_local",
               .kind = attribute_kind::boolean,
               .meaning = "1: entries of the request, to be translated; 0: slots",
               .optional = true,
               .fallback = "0"},
              {.name = "swa_block_span",
               .kind = attribute_kind::integer,
               .meaning = "ids that a page of the window KV takes",
               .optional = true,
               .fallback = "swa_block_size"},
              {.name = "compressed_block_span",
               .kind = attribute_kind::integer,
               .meaning = "ids that a page of the compressed KV takes",
               .optional = true,
               .fallback = "compressed_block_size"},
          },
      .preconditions =
          {
              {.argument = "swa_block_size",
               .holds = "swa_block_size >= 1 && swa_block_size <= 2147483647",
               .message = "is {swa_block_size}, must be in 1..2147483647"},
              {.argument = "compressed_block_size",
               .holds = "compressed_block_size >= 1 && compressed_block_size <= 2147483647",
               .message = "is {compressed_block_size}, must be in 1..2147483647"},
              {.argument = "swa_block_span",
               .holds = "swa_block_span >= 1 && swa_block_span <= 2147483647",
               .message = "is {swa_block_span}, must be in 1..2147483647"},
              {.argument = "compressed_block_span",
               .holds = "compressed_block_span >= 1 && compressed_block_span <= 2147483647",
               .message = "is {compressed_block_span}, must be in 1..2147483647"},
              {.argument = "window_size",
               .holds = "window_size >= 0",
               .message = "is {window_size}, must not be negative"},
              {.argument = "compress_ratio",
               .holds = "compress_ratio >= 0",
               .message = "is {compress_ratio}, must not be negative"},
              {.argument = "topk",
               .holds = "topk >= 0 && topk <= 2147483647",
               .message = "is {topk}, must be in 0..2147483647"},
              {.argument = "decode_swa_indices",
               .holds = "W >= window_size",
               .message = "has {W} columns, must have at least the {window_size} of window_size"},
              {.argument = "decode_compressed_topk_lens",
               .holds = "!has(decode_compressed_topk_lens) || decode_lens >= Td",
               .message = "has {decode_lens} entries, must have at least the {Td} of the decode "
                          "tokens"},
              {.argument = "token_to_req_indices",
               .holds = "tokens >= Td + Tp",
               .message =
                   "has {tokens} entries, must have one for each of the {Td} decode and {Tp} "
                   "prefill tokens"},
              {.argument = "decode_is_valid_token",
               .holds = "!(decode_compressed_indices_are_local && C > 0) || "
                        "has(decode_is_valid_token)",
               .message =
                   "is missing, must be there where decode_compressed_indices_are_local is 1"},
              {.argument = "decode_is_valid_token",
               .holds = "!has(decode_is_valid_token) || valid_tokens >= Td",
               .message = "has {valid_tokens} entries, must have at least the {Td} of the decode "
                          "tokens"},
          },
      .captured =
          "all outputs, decode tokens with local indices or none, spans, table entries of -1",
      .derived =
          "slots given to decode tokens, with lens and without; local indices without lens; no "
          "compressed table",
      .check_indices = check_indices,
      .contents =
          {
              {"decode_swa_indices",
               "the id that a slot >= 0 becomes, with the spans, fits an i32"},
              {"decode_compressed_indices",
               "as decode_swa_indices; local entries >= 0 have a column of the compressed table"},
              {"prefill_topk_indices",
               "entries >= 0 that count have a column of the compressed table"},
              {"token_to_req_indices",
               "a prefill token's request, and one whose entries are read, is a row of the tables"},
              {"seq_lens",
               "no prefill token has a negative position; each position of its window has a column "
               "of swa_block_table"},
              {"swa_block_table", "ids of the pages that are read fit an i32"},
              {"compressed_block_table", "ids of the pages that are read fit an i32"},
          },
  };
  return contract;
}

}  // namespace kvcts
