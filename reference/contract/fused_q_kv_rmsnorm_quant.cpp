#include "reference/contract/registry.h"

namespace kvcts {

const kernel_contract& fused_q_kv_rmsnorm_quant_contract() {
  static const kernel_contract contract = {
      .name = "fused_q_kv_rmsnorm_quant",
      .family = "DeepSeek V4.1",
      .summary =
          "Normalizes (RMSNorm) q and kv rows; kv stays bf16, q becomes MXFP8 with swizzled "
          "scales.",
      .arguments =
          {
              {.name = "qr",
               .dtypes = {dtype::bf16},
               .shape = "T, Q",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "q rows"},
              {.name = "kv",
               .dtypes = {dtype::bf16},
               .shape = "T, K",
               .axes = "token, dim",
               .strides = stride_rule::rows,
               .meaning = "kv rows"},
              {.name = "q_weight",
               .dtypes = {dtype::bf16, dtype::f32},
               .shape = "Q",
               .axes = "dim",
               .meaning = "weight of q's RMSNorm"},
              {.name = "kv_weight",
               .dtypes = {dtype::bf16, dtype::f32},
               .shape = "K",
               .axes = "dim",
               .meaning = "weight of kv's RMSNorm"},
              {.name = "q_quant",
               .direction = role::output,
               .dtypes = {dtype::f8e4m3fn},
               .shape = "T, Q",
               .axes = "token, dim",
               .meaning = "E4M3 codes of the bf16 q"},
              {.name = "q_scales",
               .direction = role::output,
               .dtypes = {dtype::ue8m0},
               .shape = "ceil(T, 128) * ceil(Q / 32, 4)",
               .axes = "swizzled row and block of 32 dims",
               .meaning =
                   "UE8M0 scales in the F8_128x4 swizzle; rows padded to 128 and blocks to 4 "
                   "with 0"},
              {.name = "kv_out",
               .direction = role::output,
               .dtypes = {dtype::bf16},
               .shape = "T, K",
               .axes = "token, dim",
               .meaning = "normalized kv"},
          },
      .attributes = {{.name = "eps",
                      .kind = attribute_kind::real,
                      .meaning = "epsilon of both RMSNorms, rounded to f32"}},
      .preconditions =
          {
              {.argument = "qr",
               .holds = "Q >= 32 && Q % 32 == 0",
               .message = "has rows of {Q}, must be a positive multiple of 32"},
              {.argument = "kv",
               .holds = "K >= 1",
               .message = "has rows of {K}, must be at least 1"},
          },
      .captured = "q rows of 1024 and 1536, kv rows of 512, bf16 weights; profile nvidia",
      .derived = "other widths; f32 weights; profile ieee",
      // One launch shape for both rows: 8 warps where the longer one is padded to 2048 or more.
      .reductions = {{.name = "RMSNorm of qr",
                      .width = "Q",
                      .padded = "max(Q, K)",
                      .warps = "4 + 4 * (max(Q, K) > 1024)",
                      .element_bytes = 2},
                     {.name = "RMSNorm of kv",
                      .width = "K",
                      .padded = "max(Q, K)",
                      .warps = "4 + 4 * (max(Q, K) > 1024)",
                      .element_bytes = 2}},
  };
  return contract;
}

}  // namespace kvcts
