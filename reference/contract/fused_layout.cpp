#include "reference/contract/registry.h"

namespace kvcts {

const kernel_contract& fused_layout_contract() {
  static const std::vector<dtype> any_dtype = {dtype::bf16,       dtype::f32, dtype::f8e4m3fn,
                                               dtype::f8e4m3fnuz, dtype::u8,  dtype::i32};
  static const kernel_contract contract = {
      .name = "fused_layout",
      .family = "DeepSeek V4.1",
      .summary = "Permutes the rows of a weight, or of its scales, for a fused attention kernel.",
      .arguments =
          {
              {.name = "x",
               .dtypes = any_dtype,
               .shape = "N, ...",
               .axes = "row, further dims",
               .meaning = "rows in standard order: head by head"},
              {.name = "y",
               .direction = role::output,
               .dtypes = any_dtype,
               .shape = "N, ...",
               .axes = "row, further dims",
               .meaning = "the same rows in fused order",
               .dtype_like = "x"},
          },
      .attributes =
          {
              {.name = "op",
               .kind = attribute_kind::text,
               .meaning =
                   "q: 16 dims of every head, then the next 16; o: 32 dims of every head of a "
                   "group; o_chunk: the same for scales, a row a chunk of 32 dims",
               .choices = {"q", "o", "o_chunk"}},
              {.name = "heads",
               .kind = attribute_kind::integer,
               .meaning = "q: all heads; o and o_chunk: heads of a group"},
              {.name = "head_dim", .kind = attribute_kind::integer, .meaning = "dims of a head"},
          },
      .preconditions =
          {
              {.argument = "heads",
               .holds = "heads >= 1 && heads <= 2147483647",
               .message = "is {heads}, must be in 1..2147483647"},
              {.argument = "head_dim",
               .holds = "head_dim >= 1 && head_dim <= 2147483647",
               .message = "is {head_dim}, must be in 1..2147483647"},
              {.argument = "head_dim",
               .holds = "op != 'q' || head_dim % 16 == 0",
               .message = "is {head_dim}, must be a multiple of 16 for op {op}"},
              {.argument = "head_dim",
               .holds = "op == 'q' || head_dim % 32 == 0",
               .message = "is {head_dim}, must be a multiple of 32 for op {op}"},
              {.argument = "x",
               .holds = "op != 'q' || N == heads * head_dim",
               .message = "has {N} rows, must have {heads} heads * {head_dim} dims"},
              {.argument = "x",
               .holds = "op != 'o' || N % (heads * head_dim) == 0",
               .message =
                   "has {N} rows, must have whole groups of {heads} heads * {head_dim} dims"},
              {.argument = "x",
               .holds = "op != 'o_chunk' || N % (heads * (head_dim / 32)) == 0",
               .message =
                   "has {N} rows, must have whole groups of {heads} heads, a row for each 32 "
                   "of {head_dim} dims"},
          },
      .captured = "nothing",
      .derived = "all of it",
  };
  return contract;
}

}  // namespace kvcts
