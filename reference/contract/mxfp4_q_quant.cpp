#include "reference/contract/registry.h"

namespace kvcts {

const kernel_contract& mxfp4_q_quant_contract() {
  static const kernel_contract contract = {
      .name = "mxfp4_q_quant",
      .family = "Kimi K3.1",
      .summary =
          "Quantizes the indexer query to MXFP4 (one UE8M0 scale per 32 dims) and scales the "
          "head weights.",
      .arguments =
          {
              {.name = "index_q",
               .dtypes = {dtype::bf16},
               .shape = "T, H, 128",
               .axes = "token, head, dim",
               .strides = stride_rule::rows,
               .meaning = "indexer query"},
              {.name = "index_weights",
               .dtypes = {dtype::bf16, dtype::f32},
               .shape = "T, H",
               .axes = "token, head",
               .strides = stride_rule::rows,
               .meaning = "weight of each head"},
              {.name = "q_packed",
               .direction = role::output,
               .dtypes = {dtype::u8},
               .shape = "T, padded_num_heads, 64",
               .axes = "token, head, byte of two dims",
               .meaning = "E2M1 codes, the even dim in the low nibble; padded heads are 0"},
              {.name = "q_scale",
               .direction = role::output,
               .dtypes = {dtype::i32},
               .shape = "T, padded_num_heads",
               .axes = "token, head",
               .meaning =
                   "the head's four UE8M0 bytes, block 0 in the low byte; padded heads are 0"},
              {.name = "weights",
               .direction = role::output,
               .dtypes = {dtype::f32},
               .shape = "T, padded_num_heads",
               .axes = "token, head",
               .meaning = "f32(index_weights) * weight_scale; padded heads are 0"},
          },
      .attributes =
          {
              {.name = "weight_scale",
               .kind = attribute_kind::real,
               .meaning = "factor of the head weights, rounded to f32"},
              {.name = "padded_num_heads",
               .kind = attribute_kind::integer,
               .meaning = "heads of the outputs, P"},
          },
      .preconditions = {{.argument = "padded_num_heads",
                         .holds = "padded_num_heads >= H",
                         .message = "is {padded_num_heads}, must be at least the {H} heads of "
                                    "index_q"}},
      .captured = "all outputs, bf16 weights, profile nvidia",
      .derived = "f32 weights; profile ieee",
  };
  return contract;
}

}  // namespace kvcts
