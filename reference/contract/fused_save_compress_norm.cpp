#include <algorithm>
#include <map>
#include <string>

#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

// Chunks follow one another inside the rows.
void check_chunks(const call& c) {
  const tensor_view& starts = c.tensor("query_start_loc");
  const std::int64_t rows = c.tensor("kv_score").dim(0);
  std::int64_t before = 0;
  for (std::int64_t r = 0; r < starts.dim(0); ++r) {
    const std::int64_t start = integer_at(starts, r);
    if (start < before || start > rows) {
      reject(c, "query_start_loc",
             "element " + std::to_string(r) + " is " + std::to_string(start) + ", must be in " +
                 std::to_string(before) + ".." + std::to_string(rows) +
                 ": chunks do not go back, nor past the rows of kv_score");
    }
    before = start;
  }
}

// A stored latent's token lies in the chunk of its request.
void check_request(const call& c, std::int64_t token) {
  const tensor_view& starts = c.tensor("query_start_loc");
  const std::int64_t requests = starts.dim(0) - 1;
  const std::int64_t request = integer_at(c.tensor("token_to_req_indices"), token);
  if (request < 0 || request >= requests) {
    reject(c, "token_to_req_indices",
           "request " + std::to_string(request) + " of token " + std::to_string(token) +
               " is not one of the " + std::to_string(requests) + " of query_start_loc");
  }
  const std::int64_t start = integer_at(starts, request);
  const std::int64_t end = integer_at(starts, request + 1);
  if (token < start || token >= end) {
    reject(c, "token_to_req_indices",
           "token " + std::to_string(token) + " is given to request " + std::to_string(request) +
               ", whose tokens are " + std::to_string(start) + ".." + std::to_string(end - 1) +
               " by query_start_loc");
  }
}

// A chunk reads and stores its own ring: in another chunk's, the order of the two would show.
void check_ring_pages(const call& c) {
  const tensor_view& starts = c.tensor("query_start_loc");
  const tensor_view& slots = c.tensor("slot_mapping");
  const std::int64_t capacity = c.tensor("state_cache").dim(1);
  std::map<std::int64_t, std::int64_t> request_of_page;
  for (std::int64_t r = 0; r + 1 < starts.dim(0); ++r) {
    const std::int64_t end = std::min(integer_at(starts, r + 1), slots.dim(0));
    for (std::int64_t t = integer_at(starts, r); t < end; ++t) {
      const std::int64_t slot = integer_at(slots, t);
      if (slot < 0) continue;
      const std::int64_t owner = request_of_page.emplace(slot / capacity, r).first->second;
      if (owner == r) continue;
      reject(c, "slot_mapping",
             "slot " + std::to_string(slot) + " of token " + std::to_string(t) + ", request " +
                 std::to_string(r) + ", is in ring page " + std::to_string(slot / capacity) +
                 " of request " + std::to_string(owner) + ": no two may share a page");
    }
  }
}

void check_indices(const call& c) {
  if (c.integer("compress_ratio") == 1) return;
  check_chunks(c);
  check_slots(c, "slot_mapping", "state_cache", c.tensor("state_cache").dim(1));
  const tensor_view& slots = c.tensor("slot_mapping");
  const tensor_view& positions = c.tensor("positions");
  for (std::int64_t t = 0; t < slots.dim(0); ++t) {
    if (integer_at(slots, t) < 0) continue;
    const std::int64_t position = integer_at(positions, t);
    if (position < 0) {
      reject(c, "positions",
             "position " + std::to_string(position) + " of token " + std::to_string(t) +
                 " is negative, must be 0 or more where the slot is");
    }
    if (position % 2 == 1) check_request(c, t);
  }
  check_ring_pages(c);
}

}  // namespace

const kernel_contract& fused_save_compress_norm_contract() {
  static const kernel_contract contract = {
      .name = "fused_save_compress_norm",
      .family = "DeepSeek V4.1",
      .summary =
          "Pools each group of rows by a softmax over their scores, normalizes the latents "
          "(RMSNorm), and keeps the last raw rows of each chunk in a ring.",
      .arguments =
          {
              {.name = "kv_score",
               .dtypes = {dtype::f32},
               .shape = "T, 512 * compress_ratio",
               .axes = "token, kv then score",
               .strides = stride_rule::rows,
               .meaning = "raw rows: 512 kv, and at ratio 2 their 512 scores"},
              {.name = "positions",
               .dtypes = {dtype::i64},
               .shape = "P",
               .axes = "token",
               .meaning = "position of each token; latents are written where (position + 1) % "
                          "compress_ratio is 0"},
              {.name = "state_cache",
               .direction = role::updated,
               .dtypes = {dtype::f32},
               .shape = "pages, capacity, 1024",
               .axes = "page, ring row, kv then score",
               .strides = stride_rule::rows,
               .meaning = "rings of raw rows; needed at ratio 2, left alone at ratio 1",
               .optional = true},
              {.name = "slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "S",
               .axes = "token",
               .meaning =
                   "page * capacity + ring row of each token; its length is the token count; "
                   "negative: no latent, no ring row"},
              {.name = "query_start_loc",
               .dtypes = {dtype::i32},
               .shape = "starts",
               .axes = "request",
               .meaning = "first token of each request, and the end of the last; at ratio 2",
               .optional = true},
              {.name = "token_to_req_indices",
               .dtypes = {dtype::i32},
               .shape = "assigned",
               .axes = "token",
               .meaning = "request of each token; at ratio 2",
               .optional = true},
              {.name = "rms_norm_weight",
               .dtypes = {dtype::bf16, dtype::f32},
               .shape = "512",
               .axes = "dim",
               .meaning = "weight of the RMSNorm"},
              {.name = "latent_out",
               .direction = role::updated,
               .dtypes = {dtype::bf16},
               .shape = "L, 512",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "latent rows, at group ends with a slot only"},
          },
      .attributes =
          {
              {.name = "rms_norm_eps",
               .kind = attribute_kind::real,
               .meaning = "epsilon of the RMSNorm, rounded to f32"},
              {.name = "compress_ratio", .meaning = "tokens a group, 1 or 2"},
          },
      .preconditions =
          {
              {.argument = "compress_ratio",
               .holds = "compress_ratio == 1 || compress_ratio == 2",
               .message = "is {compress_ratio}, must be 1 or 2"},
              {.argument = "state_cache",
               .holds = "compress_ratio == 1 || has(state_cache)",
               .message = "is missing, must be there where compress_ratio is 2"},
              {.argument = "query_start_loc",
               .holds = "compress_ratio == 1 || has(query_start_loc)",
               .message = "is missing, must be there where compress_ratio is 2"},
              {.argument = "token_to_req_indices",
               .holds = "compress_ratio == 1 || has(token_to_req_indices)",
               .message = "is missing, must be there where compress_ratio is 2"},
              {.argument = "state_cache",
               .holds = "compress_ratio == 1 || capacity >= 1",
               .message = "has rings of {capacity} rows, must have at least 1"},
              {.argument = "query_start_loc",
               .holds = "compress_ratio == 1 || starts >= 1",
               .message = "has {starts} elements, must have one more than requests"},
              {.argument = "slot_mapping",
               .holds = "S <= T",
               .message = "has {S} slots for the {T} rows of kv_score, must have at most as many"},
              {.argument = "slot_mapping",
               .holds = "S <= P",
               .message = "has {S} slots for {P} positions, must have at most as many"},
              {.argument = "slot_mapping",
               .holds = "S <= L",
               .message =
                   "has {S} slots for the {L} rows of latent_out, must have at most as many"},
              {.argument = "slot_mapping",
               .holds = "compress_ratio == 1 || S <= assigned",
               .message = "has {S} slots for the {assigned} tokens of token_to_req_indices, must "
                          "have at most as many"},
          },
      .captured = "ratio 1 and 2, rings of 4 and 8 rows, bf16 weights; profile nvidia",
      .derived = "slots below -1; f32 weights; other capacities; profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"query_start_loc",
               "where compress_ratio is 2, as all that follows: never falls, and ends within the "
               "rows of kv_score"},
              {"slot_mapping",
               "no slot past the pages; negative: none; no page is of two requests"},
              {"positions", "0 or more where the slot is"},
              {"token_to_req_indices",
               "the request whose tokens the one of a slot at an odd position is among"},
          },
      .reductions = {{.name = "RMSNorm of the latent",
                      .width = "512",
                      .padded = "512",
                      .warps = "4",
                      .element_bytes = 4}},
  };
  return contract;
}

}  // namespace kvcts
