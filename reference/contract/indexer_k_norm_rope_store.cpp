#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  check_slots(c, "kv_slot_mapping", "k_cache", c.tensor("k_cache").dim(1));
  if (c.integer("use_fp4_cache") == 0) check_f32_alignment(c, "k_cache", false);
  check_group_positions(c, "positions", "kv_slot_mapping", "cos_sin_cache");
}

}  // namespace

const kernel_contract& indexer_k_norm_rope_store_contract() {
  static const kernel_contract contract = {
      .name = "indexer_k_norm_rope_store",
      .family = "DeepSeek V4.1",
      .summary =
          "Normalizes (RMSNorm) and rotates indexer keys at group ends, quantizes them to FP8 "
          "or MXFP4 and inserts them into a paged cache.",
      .arguments =
          {
              {.name = "k_pre",
               .dtypes = {dtype::bf16},
               .shape = "N, 128",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "keys; the last 64 dims rotate"},
              {.name = "positions",
               .dtypes = {dtype::i64},
               .shape = "P",
               .axes = "token",
               .meaning = "position of each token; a key is stored where (position + 1) % "
                          "compress_ratio is 0"},
              {.name = "cos_sin_cache",
               .dtypes = {dtype::f32, dtype::bf16},
               .shape = "max_pos, 64",
               .axes = "position, cosines then sines",
               .strides = stride_rule::rows,
               .meaning = "32 cosines, then 32 sines; read at the group's first position"},
              {.name = "rms_norm_weight",
               .dtypes = {dtype::bf16, dtype::f32},
               .shape = "128",
               .axes = "dim",
               .meaning = "weight of the RMSNorm"},
              {.name = "k_cache",
               .direction = role::updated,
               .dtypes = {dtype::u8},
               .shape = "blocks, B, 132 - 64 * use_fp4_cache",
               .axes = "page, position, byte",
               .strides = stride_rule::pages,
               .meaning = "paged cache: the keys of a page, then their scales",
               .record = "132 - 64 * use_fp4_cache"},
              {.name = "kv_slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "S",
               .axes = "token",
               .meaning =
                   "slot of each token; its length is the token count; negative: not stored"},
          },
      .attributes =
          {
              {.name = "rms_norm_eps",
               .kind = attribute_kind::real,
               .meaning = "epsilon of the RMSNorm, rounded to f32"},
              {.name = "compress_ratio", .meaning = "tokens a group, 1 or 2"},
              {.name = "use_fp4_cache",
               .kind = attribute_kind::boolean,
               .meaning = "1: MXFP4, 68 bytes a key; 0: FP8 with one f32 scale, 132 bytes"},
              {.name = "shuffle",
               .kind = attribute_kind::boolean,
               .meaning =
                   "1: the FP8 values of a page in tiles of 16 tokens x 16 dims; 0: by rows"},
          },
      .preconditions =
          {
              {.argument = "compress_ratio",
               .holds = "compress_ratio == 1 || compress_ratio == 2",
               .message = "is {compress_ratio}, must be 1 or 2"},
              {.argument = "shuffle",
               .holds = "!(shuffle && use_fp4_cache)",
               .message = "is 1, must be 0 where use_fp4_cache is 1: MXFP4 has no tiled layout"},
              {.argument = "k_cache",
               .holds = "B >= 1",
               .message = "has {B} tokens a page, must have at least 1"},
              {.argument = "k_cache",
               .holds = "!shuffle || B % 16 == 0",
               .message = "has {B} tokens a page, must have a multiple of 16 for tiles (shuffle)"},
              {.argument = "kv_slot_mapping",
               .holds = "S <= N",
               .message = "has {S} slots for the {N} rows of k_pre, must have at most as many"},
              {.argument = "kv_slot_mapping",
               .holds = "S <= P",
               .message = "has {S} slots for {P} positions, must have at most as many"},
          },
      .captured =
          "FP8 and MXFP4, ratio 1 and 2, by rows, f32 cos/sin, bf16 weights; profile nvidia",
      .derived =
          "the tiled layout; slots below -1; bf16 cos/sin; f32 weights; MXFP4 scale bytes of 254; "
          "profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"kv_slot_mapping", slots_rule},
              {"k_cache",
               "where !use_fp4_cache: offset and page stride are multiples of 4 bytes: f32 scales "
               "lie inside"},
              {"positions", group_position_rule},
          },
      .reductions = {{.name = "RMSNorm of k_pre",
                      .width = "128",
                      .padded = "128",
                      .warps = "1",
                      .element_bytes = 2}},
  };
  return contract;
}

}  // namespace kvcts
