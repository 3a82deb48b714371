#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

constexpr std::string_view row_elements =
    "512 + 72 * (record == 'v4') + 16 * (record == 'v41_mxfp8') - 224 * (record == 'v41_nvfp4')";

void check_indices(const call& c) {
  check_slots(c, "slot_mapping", "kv_cache", c.tensor("kv_cache").dim(1));
  check_group_positions(c, "positions", "slot_mapping", "cos_sin_cache");
}

}  // namespace

const kernel_contract& rope_quant_insert_contract() {
  static const kernel_contract contract = {
      .name = "rope_quant_insert",
      .family = "DeepSeek V4.1",
      .summary =
          "Rotates latents at group ends and inserts them into a paged cache, as one of the "
          "quantized records or as plain rows.",
      .arguments =
          {
              {.name = "latent",
               .dtypes = {dtype::bf16},
               .shape = "N, 512",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "latent rows; the last 64 dims rotate"},
              {.name = "positions",
               .dtypes = {dtype::i64},
               .shape = "P",
               .axes = "token",
               .meaning = "position of each token; a latent is inserted where (position + 1) % "
                          "compress_ratio is 0"},
              {.name = "cos_sin_cache",
               .dtypes = {dtype::f32, dtype::bf16},
               .shape = "max_pos, 64",
               .axes = "position, cosines then sines",
               .strides = stride_rule::rows,
               .meaning = "32 cosines, then 32 sines; read at the group's first position"},
              {.name = "kv_cache",
               .direction = role::updated,
               .dtypes = {dtype::f8e4m3fn, dtype::bf16, dtype::u8},
               .shape = "blocks, B, row",
               .axes = "page, position, element of the record",
               .strides = stride_rule::pages,
               .meaning = "paged cache",
               .record = row_elements,
               .dtype_when = {"record == 'fp8'", "record == 'bf16'", "record != 'bf16'"}},
              {.name = "slot_mapping",
               .dtypes = {dtype::i64},
               .shape = "S",
               .axes = "token",
               .meaning =
                   "slot of each token; its length is the token count; negative: not inserted"},
              {.name = "fp8_scale",
               .dtypes = {dtype::f32},
               .shape = "1",
               .axes = "tensor",
               .meaning = "scale of plain FP8 rows: a value is its code times this",
               .optional = true},
          },
      .attributes =
          {
              {.name = "compress_ratio", .meaning = "tokens a group, 1 or 2"},
              {.name = "record",
               .kind = attribute_kind::text,
               .meaning = "v4 (584 bytes), v41_mxfp8 (528), v41_nvfp4 (288), or plain rows of bf16 "
                          "or fp8",
               .choices = {"v4", "v41_mxfp8", "v41_nvfp4", "bf16", "fp8"}},
          },
      .preconditions =
          {
              {.argument = "compress_ratio",
               .holds = "compress_ratio == 1 || compress_ratio == 2",
               .message = "is {compress_ratio}, must be 1 or 2"},
              {.argument = "fp8_scale",
               .holds = "record != 'fp8' || has(fp8_scale)",
               .message = "is missing, must be there for the record fp8"},
              {.argument = "kv_cache",
               .holds = "B >= 1",
               .message = "has {B} tokens a page, must have at least 1"},
              {.argument = "kv_cache",
               .holds = "record != 'v4' || row == 584",
               .message = "has records of {row} bytes, must have 584 for the record v4"},
              {.argument = "kv_cache",
               .holds = "record != 'v41_mxfp8' || row == 528",
               .message = "has records of {row} bytes, must have 528 for the record v41_mxfp8"},
              {.argument = "kv_cache",
               .holds = "record != 'v41_nvfp4' || row == 288",
               .message = "has records of {row} bytes, must have 288 for the record v41_nvfp4"},
              {.argument = "kv_cache",
               .holds = "(record != 'bf16' && record != 'fp8') || row == 512",
               .message = "has rows of {row} elements, must have 512"},
              {.argument = "slot_mapping",
               .holds = "S <= N",
               .message = "has {S} slots for the {N} rows of latent, must have at most as many"},
              {.argument = "slot_mapping",
               .holds = "S <= P",
               .message = "has {S} slots for {P} positions, must have at most as many"},
          },
      .captured = "all records, ratio 1 and 2, f32 cos/sin; profile nvidia",
      .derived = "slots below -1; bf16 cos/sin; profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"slot_mapping", slots_rule},
              {"positions", group_position_rule},
          },
  };
  return contract;
}

}  // namespace kvcts
