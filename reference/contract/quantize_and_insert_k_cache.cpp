#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  check_slots(c, "slot_mapping", "k_cache", c.integer("block_size"));
}

}  // namespace

const kernel_contract& quantize_and_insert_k_cache_contract() {
  static const kernel_contract contract = {
      .name = "quantize_and_insert_k_cache",
      .family = "DeepSeek V4.1",
      .summary = "Quantizes K rows to FP8 with UE8M0 scales and inserts them into a paged cache.",
      .arguments =
          {
              {.name = "k",
               .dtypes = {dtype::bf16},
               .shape = "N, 512",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "K rows; rows at or past the slot mapping's length are not inserted"},
              {.name = "k_cache",
               .direction = role::updated,
               .dtypes = {dtype::u8},
               .shape = "blocks, block_size, bytes_per_token",
               .axes = "page, position, byte",
               .strides = stride_rule::pages,
               .meaning = "paged cache: the data of a page's tokens, then their scales",
               .record = "bytes_per_token",
               .block_size = "block_size"},
              {.name = "slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "S",
               .axes = "token",
               .meaning =
                   "slot of each token; its length is the token count; negative: not inserted"},
          },
      .attributes =
          {
              {.name = "block_size",
               .kind = attribute_kind::integer,
               .meaning = "tokens a page, B"},
              {.name = "use_fnuz",
               .kind = attribute_kind::boolean,
               .meaning = "1: E4M3 FNUZ codes and the limit 224; 0: OCP codes and 448"},
              {.name = "bytes_per_token",
               .kind = attribute_kind::integer,
               .meaning =
                   "record: 584 (448 E4M3, 64 BF16, 7 UE8M0, pad) or 528 (512 E4M3, 16 UE8M0)"},
          },
      .preconditions =
          {
              {.argument = "block_size",
               .holds = "block_size >= 1",
               .message = "is {block_size}, must be at least 1"},
              {.argument = "bytes_per_token",
               .holds = "bytes_per_token == 584 || bytes_per_token == 528",
               .message = "is {bytes_per_token}, must be 584 or 528"},
              {.argument = "slot_mapping",
               .holds = "S <= N",
               .message = "has {S} slots for the {N} rows of k, must have at most as many"},
          },
      .captured = "OCP codes, records 584 and 528, profile nvidia",
      .derived = "FNUZ codes; slots below -1; profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"slot_mapping", slots_rule},
          },
  };
  return contract;
}

}  // namespace kvcts
