#include "reference/contract/indices.h"
#include "reference/contract/registry.h"

namespace kvcts {
namespace {

void check_indices(const call& c) {
  const tensor_view& seq_lens = c.tensor("seq_lens");
  const tensor_view* gather_lens = c.find("gather_lens");
  const std::string_view lens_name = gather_lens != nullptr ? "gather_lens" : "seq_lens";
  const tensor_view& table = c.tensor("block_table");
  const std::int64_t pages = c.tensor("k_cache").dim(0);
  const std::int64_t rows = c.tensor("out").dim(1);
  const std::int64_t block_size = c.integer("block_size");
  const std::int64_t offset = c.integer("offset");
  for (std::int64_t r = 0; r < seq_lens.dim(0); ++r) {
    const std::string request = "request " + std::to_string(r);
    const std::int64_t seq_len = integer_at(seq_lens, r);
    const std::int64_t gather_len = gather_lens != nullptr ? integer_at(*gather_lens, r) : seq_len;
    if (gather_len <= 0) continue;
    if (gather_len > seq_len) {
      reject(c, lens_name,
             request + " gathers " + std::to_string(gather_len) +
                 " tokens, must gather at most its " + std::to_string(seq_len));
    }
    if (offset + gather_len > rows) {
      reject(c, lens_name,
             request + " gathers " + std::to_string(gather_len) + " tokens to row " +
                 std::to_string(offset) + " on, must fit the " + std::to_string(rows) +
                 " rows of out");
    }
    if ((seq_len - 1) / block_size >= table.dim(1)) {
      reject(c, "seq_lens",
             request + " has " + std::to_string(seq_len) + " tokens, must have at most " +
                 std::to_string(table.dim(1)) + " columns of block_table * " +
                 std::to_string(block_size));
    }
    const std::int64_t first = (seq_len - gather_len) / block_size;
    for (std::int64_t column = first; column <= (seq_len - 1) / block_size; ++column) {
      const std::int64_t page = integer_at(table, r, column);
      if (page >= 0 && page < pages) continue;
      reject(c, "block_table",
             "page " + std::to_string(page) + " of " + request + ", column " +
                 std::to_string(column) + " is not in the cache, must be in 0.." +
                 std::to_string(pages - 1));
    }
  }
}

}  // namespace

const kernel_contract& dequantize_and_gather_k_cache_contract() {
  static const kernel_contract contract = {
      .name = "dequantize_and_gather_k_cache",
      .family = "DeepSeek V4.1",
      .summary =
          "Gathers the last tokens of each request from a paged K cache and dequantizes them "
          "to bf16.",
      .arguments =
          {
              {.name = "out",
               .direction = role::updated,
               .dtypes = {dtype::bf16},
               .shape = "R, M, 512",
               .axes = "request, row, dim",
               .strides = stride_rule::rows,
               .meaning = "rows offset.. of each request are written"},
              {.name = "k_cache",
               .dtypes = {dtype::u8},
               .shape = "blocks, block_size, record_bytes",
               .axes = "page, position, byte",
               .strides = stride_rule::pages,
               .meaning = "paged cache; its last dimension tells the record",
               .record = "record_bytes"},
              {.name = "seq_lens",
               .dtypes = {dtype::i32},
               .shape = "R",
               .axes = "request",
               .meaning = "tokens of each request"},
              {.name = "gather_lens",
               .dtypes = {dtype::i32},
               .shape = "R",
               .axes = "request",
               .meaning = "tokens to gather, the request's last ones; absent: all",
               .optional = true},
              {.name = "block_table",
               .dtypes = {dtype::i32},
               .shape = "R, columns",
               .axes = "request, column",
               .strides = stride_rule::rows,
               .meaning = "page of each block of a request"},
          },
      .attributes =
          {
              {.name = "block_size",
               .kind = attribute_kind::integer,
               .meaning = "tokens a page, B"},
              {.name = "offset",
               .kind = attribute_kind::integer,
               .meaning = "row of out that a request's first gathered token takes"},
              {.name = "use_fnuz",
               .kind = attribute_kind::boolean,
               .meaning = "1: the cache holds E4M3 FNUZ codes; 0: OCP codes"},
          },
      .preconditions =
          {
              {.argument = "block_size",
               .holds = "block_size >= 1",
               .message = "is {block_size}, must be at least 1"},
              {.argument = "offset",
               .holds = "offset >= 0 && offset <= 4611686018427387904",
               .message = "is {offset}, must be in 0..4611686018427387904"},
              {.argument = "k_cache",
               .holds = "record_bytes == 584 || record_bytes == 528 || record_bytes == 288",
               .message = "has records of {record_bytes} bytes, must be 584, 528 or 288"},
              {.argument = "use_fnuz",
               .holds = "!use_fnuz || record_bytes != 288",
               .message = "is 1 for records of 288 bytes, must be 0: their scales are OCP E4M3"},
          },
      .captured = "OCP codes, records 584, 528 and 288, profile nvidia",
      .derived = "FNUZ codes; profile ieee",
      .check_indices = check_indices,
      .contents =
          {
              {"gather_lens",
               "at most seq_lens; offset and they fit the M rows of out (so do seq_lens where this "
               "is absent)"},
              {"seq_lens", "at most columns * block_size, where the request gathers any"},
              {"block_table", "pages that are read are in 0..blocks-1"},
          },
  };
  return contract;
}

}  // namespace kvcts
