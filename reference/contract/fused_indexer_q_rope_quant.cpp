#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  const std::int64_t tokens = c.tensor("positions").dim(0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    check_position(c, "positions", t, "index_q_cos_sin_cache");
  }
}

}  // namespace

const kernel_contract& fused_indexer_q_rope_quant_contract() {
  static const kernel_contract contract = {
      .name = "fused_indexer_q_rope_quant",
      .family = "DeepSeek V4.1",
      .summary =
          "Rotates the last dims of the indexer query (GPT-J RoPE) and quantizes it to FP8 or "
          "MXFP4; folds scales into the head weights.",
      .arguments =
          {
              {.name = "positions",
               .dtypes = {dtype::i64},
               .shape = "T",
               .axes = "token",
               .meaning = "position of each token, a row of index_q_cos_sin_cache"},
              {.name = "index_q",
               .dtypes = {dtype::bf16},
               .shape = "T, H, D",
               .axes = "token, head, dim",
               .strides = stride_rule::rows,
               .meaning = "indexer query; the last R dims of a head rotate"},
              {.name = "index_q_cos_sin_cache",
               .dtypes = {dtype::f32, dtype::bf16},
               .shape = "max_pos, R",
               .axes = "position, cosines then sines",
               .strides = stride_rule::rows,
               .meaning = "R/2 cosines, then R/2 sines of each position"},
              {.name = "index_weights",
               .dtypes = {dtype::bf16, dtype::f32},
               .shape = "T, H",
               .axes = "token, head",
               .strides = stride_rule::rows,
               .meaning = "weight of each head"},
              {.name = "q_quant",
               .direction = role::output,
               .dtypes = {dtype::f8e4m3fn, dtype::f8e4m3fnuz},
               .shape = "T, H, D",
               .axes = "token, head, dim",
               .meaning = "E4M3 codes; their scale, one a head, is folded into weights_out",
               .when = "!use_fp4",
               .dtype_when = {"fp8_format == 'e4m3fn'", "fp8_format == 'e4m3fnuz'"}},
              {.name = "q_packed",
               .direction = role::output,
               .dtypes = {dtype::e2m1x2},
               .shape = "T, H, D / 2",
               .axes = "token, head, byte of two dims",
               .meaning = "E2M1 codes, the even dim in the low nibble",
               .when = "use_fp4"},
              {.name = "q_scale",
               .direction = role::output,
               .dtypes = {dtype::ue8m0},
               .shape = "T, H, D / 32",
               .axes = "token, head, block of 32 dims",
               .meaning = "UE8M0 scale of each block",
               .when = "use_fp4"},
              {.name = "weights_out",
               .direction = role::output,
               .dtypes = {dtype::f32, dtype::bf16},
               .shape = "T, H",
               .axes = "token, head",
               .meaning =
                   "FP8: ((weight * scale) * softmax) * head; MXFP4: (weight * softmax) * head",
               .dtype_when = {"weights_out_dtype == 'f32'", "weights_out_dtype == 'bf16'"}},
          },
      .attributes =
          {
              {.name = "index_weights_softmax_scale",
               .kind = attribute_kind::real,
               .meaning = "factor of the head weights, rounded to f32"},
              {.name = "index_weights_head_scale",
               .kind = attribute_kind::real,
               .meaning = "factor of the head weights, rounded to f32"},
              {.name = "use_fp4",
               .kind = attribute_kind::boolean,
               .meaning = "1: MXFP4, a scale for 32 dims; 0: FP8, a scale for each token and head"},
              {.name = "weights_out_dtype",
               .kind = attribute_kind::text,
               .meaning = "dtype of weights_out; 'bf16' with MXFP4 only",
               .choices = {"f32", "bf16"}},
              {.name = "fp8_format",
               .kind = attribute_kind::text,
               .meaning = "E4M3 form of the FP8 codes; FNUZ scales divide by 224, OCP ones by 448",
               .choices = {"e4m3fn", "e4m3fnuz"}},
          },
      .preconditions =
          {
              {.argument = "weights_out_dtype",
               .holds = "use_fp4 || weights_out_dtype == 'f32'",
               .message = "is '{weights_out_dtype}', must be 'f32' unless use_fp4 is 1"},
              {.argument = "index_q",
               .holds = "D >= 1",
               .message = "has a head dim of {D}, must be at least 1"},
              {.argument = "index_q",
               .holds = "!use_fp4 || D % 32 == 0",
               .message = "has a head dim of {D}, must be a multiple of 32 with MXFP4"},
              {.argument = "index_q_cos_sin_cache",
               .holds = "R % 2 == 0 && R <= D",
               .message = "has rows of {R}, must be even and at most the head dim {D}"},
          },
      .captured =
          "FP8 (OCP) and MXFP4, head dim 128, 64 rotated dims, f32 and bf16 cos/sin, bf16 "
          "weights, f32 weights_out; profile nvidia",
      .derived = "FNUZ codes; other dims; f32 weights; bf16 weights_out; profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"positions", position_rule},
          },
  };
  return contract;
}

}  // namespace kvcts
