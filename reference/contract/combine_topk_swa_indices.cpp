#include <algorithm>

#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  const tensor_view& starts = c.tensor("query_start_loc");
  check_query_starts(c, "query_start_loc", integer_at(starts, 0), c.tensor("topk_indices").dim(0));
  const tensor_view& gather_lens = c.tensor("gather_lens");
  const std::int64_t compressed = c.integer("N");
  for (std::int64_t r = 0; r < gather_lens.dim(0); ++r) {
    if (integer_at(starts, r) == integer_at(starts, r + 1)) continue;
    // The largest id: the last compressed entry, or the last window entry.
    const std::int64_t last = std::max(integer_at(gather_lens, r) - 1, std::int64_t{0});
    check_id(c, "gather_lens", "request " + std::to_string(r),
             c.integer("M") * r + compressed + last);
  }
}

}  // namespace

const kernel_contract& combine_topk_swa_indices_contract() {
  static const kernel_contract contract = {
      .name = "combine_topk_swa_indices",
      .family = "DeepSeek V4.1",
      .summary =
          "Joins each token's top-k indices and its sliding window into one row of indices "
          "into gathered KV.",
      .arguments =
          {
              {.name = "topk_indices",
               .dtypes = {dtype::i32},
               .shape = "T, K",
               .axes = "token, column",
               .strides = stride_rule::rows,
               .meaning = "compressed entry of the token's request; outside 0..N-1: none"},
              {.name = "query_start_loc",
               .dtypes = {dtype::i32},
               .shape = "R + 1",
               .axes = "request",
               .meaning = "first token of each request, counted from the first one's"},
              {.name = "seq_lens",
               .dtypes = {dtype::i32},
               .shape = "R",
               .axes = "request",
               .meaning = "tokens of each request, the queries included"},
              {.name = "gather_lens",
               .dtypes = {dtype::i32},
               .shape = "R",
               .axes = "request",
               .meaning = "window entries gathered of each request, its last ones"},
              {.name = "combined_indices",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "T, ceil(topk + window_size, 128)",
               .axes = "token, column",
               .meaning = "top-k entries, then window entries, then -1"},
              {.name = "combined_lens",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "T",
               .axes = "token",
               .meaning = "columns in use; 0 for tokens of no request"},
          },
      .attributes =
          {
              {.name = "window_size",
               .kind = attribute_kind::integer,
               .meaning = "positions of the sliding window"},
              {.name = "compress_ratio",
               .kind = attribute_kind::integer,
               .meaning = "tokens a compressed entry; 0: there are none"},
              {.name = "topk",
               .kind = attribute_kind::integer,
               .meaning = "most compressed entries of a token"},
              {.name = "M",
               .kind = attribute_kind::integer,
               .meaning = "gathered rows of a request"},
              {.name = "N",
               .kind = attribute_kind::integer,
               .meaning = "compressed rows among them, before the window's"},
          },
      .preconditions =
          {
              {.argument = "window_size",
               .holds = "window_size >= 0 && window_size <= 2147483647",
               .message = "is {window_size}, must be in 0..2147483647"},
              {.argument = "compress_ratio",
               .holds = "compress_ratio >= 0",
               .message = "is {compress_ratio}, must not be negative"},
              {.argument = "topk",
               .holds = "topk >= 0 && topk <= 2147483647",
               .message = "is {topk}, must be in 0..2147483647"},
              {.argument = "M",
               .holds = "M >= 0 && M <= 2147483647",
               .message = "is {M}, must be in 0..2147483647"},
              {.argument = "N",
               .holds = "N >= 0 && N <= 2147483647",
               .message = "is {N}, must be in 0..2147483647"},
              {.argument = "topk_indices",
               .holds = "compress_ratio == 0 || topk <= K",
               .message = "has {K} columns, must have the {topk} of topk"},
          },
      .captured = "all outputs, empty requests and tokens of no request among them",
      .derived = "a window of 0; other widths",
      .check_indices = check_indices,
      .contents =
          {
              {"query_start_loc", "never falls, and ends within the T tokens"},
              {"gather_lens", "the last id of each request that has tokens fits an i32"},
          },
  };
  return contract;
}

}  // namespace kvcts
