#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  const tensor_view& topk = c.tensor("topk_indices");
  const tensor_view& requests = c.tensor("token_to_req_indices");
  const std::int64_t block_size = c.integer("block_size");
  for (std::int64_t t = 0; t < topk.dim(0); ++t) {
    const std::int64_t request = integer_at(requests, t);
    for (std::int64_t column = 0; column < topk.dim(1); ++column) {
      const std::int64_t local = integer_at(topk, t, column);
      if (local < 0) continue;  // the table is not read
      check_request(c, "token_to_req_indices", t, request, "block_table");
      check_entry(c, "topk_indices", t, local, "block_table", request, block_size, block_size);
    }
  }
}

}  // namespace

const kernel_contract& compute_global_topk_indices_and_lens_contract() {
  static const kernel_contract contract = {
      .name = "compute_global_topk_indices_and_lens",
      .family = "DeepSeek V4.1",
      .summary = "Maps local top-k indices to global KV slots and counts the valid ones.",
      .arguments =
          {
              {.name = "topk_indices",
               .dtypes = {dtype::i32},
               .shape = "T, K",
               .axes = "token, column",
               .strides = stride_rule::rows,
               .meaning = "entry of the token's request; negative: none"},
              {.name = "token_to_req_indices",
               .dtypes = {dtype::i32},
               .shape = "T",
               .axes = "token",
               .meaning = "request of each token"},
              {.name = "block_table",
               .dtypes = {dtype::i32},
               .shape = "R, columns",
               .axes = "request, column",
               .strides = stride_rule::rows,
               .meaning = "page of each block of a request; -1 gives a negative slot"},
              {.name = "is_valid_token",
               .dtypes = {dtype::boolean},
               .shape = "T",
               .axes = "token",
               .meaning = "0 for tokens that only pad the batch: their length is 0"},
              {.name = "global_topk_indices",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "T, K",
               .axes = "token, column",
               .meaning = "slot of each entry, or -1"},
              {.name = "topk_lens",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "T",
               .axes = "token",
               .meaning = "entries >= 0 of each valid token"},
          },
      .attributes = {{.name = "block_size",
                      .kind = attribute_kind::integer,
                      .meaning = "entries a page"}},
      .preconditions = {{.argument = "block_size",
                         .holds = "block_size >= 1 && block_size <= 2147483647",
                         .message = "is {block_size}, must be in 1..2147483647"}},
      .captured = "all outputs, negative entries and padding tokens among them",
      .derived = "table entries of -1",
      .check_indices = check_indices,
      .contents =
          {
              {"topk_indices", "entries >= 0 have a column of block_table"},
              {"token_to_req_indices", "a row of block_table, where the token has entries >= 0"},
              {"block_table", "ids of the pages that are read fit an i32"},
          },
  };
  return contract;
}

}  // namespace kvcts
