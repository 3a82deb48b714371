#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  const std::int64_t tokens = c.tensor("positions").dim(0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    check_position(c, "positions", t, "cos_sin_cache");
  }
}

}  // namespace

const kernel_contract& fused_inv_rope_fp8_quant_contract() {
  static const kernel_contract contract = {
      .name = "fused_inv_rope_fp8_quant",
      .family = "DeepSeek V4.1",
      .summary =
          "Rotates the attention output's last dims back (inverse GPT-J RoPE) and quantizes it "
          "to FP8 by groups of dims, laid out by groups of heads.",
      .arguments =
          {
              {.name = "o",
               .dtypes = {dtype::bf16},
               .shape = "T, H, D",
               .axes = "token, head, dim",
               .strides = stride_rule::rows,
               .meaning = "attention output; the last rope_dim dims of a head rotate"},
              {.name = "positions",
               .dtypes = {dtype::i64},
               .shape = "T",
               .axes = "token",
               .meaning = "position of each token, a row of cos_sin_cache"},
              {.name = "cos_sin_cache",
               .dtypes = {dtype::f32},
               .shape = "max_pos, rope_dim",
               .axes = "position, cosines then sines",
               .strides = stride_rule::rows,
               .meaning = "rope_dim/2 cosines, then rope_dim/2 sines of each position"},
              {.name = "output",
               .direction = role::output,
               .dtypes = {dtype::f8e4m3fn, dtype::bf16},
               .shape = "n_groups, T, heads_per_group * D",
               .axes = "group of heads, token, dim of the group",
               .meaning =
                   "E4M3 codes, or the rotated values where quantize is 0; callers see it as "
                   "[T, n_groups, heads_per_group * D]",
               .dtype_when = {"quantize", "!quantize"}},
              {.name = "scales",
               .direction = role::output,
               .dtypes = {dtype::f32, dtype::i32},
               .shape = "n_groups * (heads_per_group * D / quant_group_size / (1 + 3 * "
                        "tma_aligned_scales)) * ceil(T, 4)",
               .axes = "scale",
               .meaning =
                   "[n_groups, inner, T rounded up to 4]: 2^e as f32, or four UE8M0 bytes an "
                   "i32; the rows behind the tokens are 0",
               .when = "quantize",
               .dtype_when = {"!tma_aligned_scales", "tma_aligned_scales"}},
          },
      .attributes =
          {
              {.name = "n_groups", .meaning = "groups of heads, G"},
              {.name = "heads_per_group", .meaning = "heads of a group"},
              {.name = "nope_dim", .meaning = "dims of a head that do not rotate"},
              {.name = "rope_dim", .meaning = "dims of a head that rotate, behind the others"},
              {.name = "quant_group_size", .meaning = "dims that share a scale"},
              {.name = "tma_aligned_scales",
               .kind = attribute_kind::boolean,
               .meaning = "1: scales are UE8M0 bytes, four in an i32; 0: f32"},
              {.name = "quantize",
               .kind = attribute_kind::boolean,
               .meaning = "1: E4M3 codes and scales; 0: bf16 values, no scales"},
          },
      .preconditions =
          {
              {.argument = "n_groups",
               .holds = "n_groups >= 1",
               .message = "is {n_groups}, must be at least 1"},
              {.argument = "heads_per_group",
               .holds = "heads_per_group >= 1",
               .message = "is {heads_per_group}, must be at least 1"},
              {.argument = "nope_dim",
               .holds = "nope_dim >= 0",
               .message = "is {nope_dim}, must not be negative"},
              {.argument = "rope_dim",
               .holds = "rope_dim >= 0 && rope_dim % 2 == 0",
               .message = "is {rope_dim}, must be even and not negative"},
              {.argument = "nope_dim",
               .holds = "nope_dim + rope_dim >= 1",
               .message = "is {nope_dim} and rope_dim is {rope_dim}: a head must have a dim"},
              {.argument = "quant_group_size",
               .holds = "quant_group_size >= 1",
               .message = "is {quant_group_size}, must be at least 1"},
              {.argument = "quant_group_size",
               .holds = "(nope_dim + rope_dim) % quant_group_size == 0",
               .message = "is {quant_group_size}, must divide the head dim nope_dim + rope_dim"},
              {.argument = "tma_aligned_scales",
               .holds = "!(quantize && tma_aligned_scales) || (nope_dim + rope_dim) / "
                        "quant_group_size % 4 == 0",
               .message = "packs four scales of a head: (nope_dim + rope_dim) / quant_group_size "
                          "must be a multiple of 4"},
              {.argument = "o",
               .holds = "D == nope_dim + rope_dim",
               .message = "has a head dim of {D}, must be nope_dim + rope_dim = {nope_dim} + "
                          "{rope_dim}"},
              {.argument = "o",
               .holds = "H == n_groups * heads_per_group",
               .message = "has {H} heads, must have n_groups * heads_per_group = {n_groups} * "
                          "{heads_per_group}"},
          },
      .captured =
          "quantize 1, head dim 448 + 64, groups of 128, f32 and packed scales; profile "
          "nvidia",
      .derived = "quantize 0; other dims and groups of dims; profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"positions", position_rule},
          },
  };
  return contract;
}

}  // namespace kvcts
