// The index kernels: rows worked out by hand from docs/kernels.md, and every refusal.
#include <gtest/gtest.h>

#include "reference/tests/call_builder.h"

namespace kvcts {
namespace {

using ints = std::vector<std::int32_t>;

const Rules nvidia = rules_for(profile::nvidia);

void set_integer(call_builder& b, const char* name, std::int64_t value) {
  b.get().attributes[name] = value;
}

// Part of a row-major matrix.
ints row_of(const ints& matrix, std::size_t width, std::size_t row, std::size_t from,
            std::size_t n) {
  const auto first = matrix.begin() + static_cast<std::ptrdiff_t>(row * width + from);
  return {first, first + static_cast<std::ptrdiff_t>(n)};
}

// --- compute_global_topk_indices_and_lens

call_builder global_topk() {
  call_builder b("compute_global_topk_indices_and_lens");
  b.i32("topk_indices", {3, 3}, {0, 5, -1, 7, -9, 4, 1, 2, 3});
  b.i32("token_to_req_indices", {3}, {0, 1, 1});
  b.i32("block_table", {2, 2}, {10, 3, 7, -1});
  b.add("is_valid_token", dtype::boolean, {3}, std::vector<std::uint8_t>{1, 2, 0});
  set_integer(b, "block_size", 4);
  return b;
}

TEST(compute_global_topk, translates_and_counts) {
  call_builder b = global_topk();
  b.run(nvidia);
  // Entry 7 of request 1 is in its second block, whose page is -1: -4 + 3.
  EXPECT_EQ(b.elements<std::int32_t>("global_topk_indices"),
            (ints{40, 13, -1, -1, -1, -4, 29, 30, 31}));
  EXPECT_EQ(b.elements<std::int32_t>("topk_lens"), (ints{2, 2, 0}));
}

TEST(compute_global_topk, strided_rows) {
  call_builder b = global_topk();
  tensor_view& v = b.add("topk_indices", dtype::i32, {{3, 3}, {5, 1}, 1});
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t k = 0; k < 3; ++k) store(v.element(t, k), static_cast<std::int32_t>(t + k));
  }
  b.run(nvidia);
  EXPECT_EQ(b.elements<std::int32_t>("global_topk_indices"),
            (ints{40, 41, 42, 29, 30, 31, 30, 31, -4}));
}

TEST(compute_global_topk, zero_tokens) {
  call_builder b = global_topk();
  b.i32("topk_indices", {0, 3}, {});
  b.i32("token_to_req_indices", {0}, {});
  b.add("is_valid_token", dtype::boolean, {0});
  b.run(nvidia);
  EXPECT_TRUE(b.elements<std::int32_t>("topk_lens").empty());
}

TEST(compute_global_topk, refusals) {
  const std::string kernel = "compute_global_topk_indices_and_lens: ";
  call_builder b = global_topk();
  b.i32("topk_indices", {3, 3}, {0, 8, -1, 7, -9, 4, 1, 2, 3});
  EXPECT_EQ(b.refusal(), kernel +
                             "topk_indices: index 8 of token 0 is past the table, must be below 2 "
                             "columns of block_table * 4 entries");
  b = global_topk();
  b.i32("token_to_req_indices", {3}, {0, 2, 1});
  EXPECT_EQ(b.refusal(), kernel +
                             "token_to_req_indices: request 2 of token 1 is no row of block_table, "
                             "must be in 0..1");
  b.i32("token_to_req_indices", {3}, {0, -1, 1});
  EXPECT_NE(b.refusal(), "");
  // A token without entries reads no table row.
  b.i32("topk_indices", {3, 3}, {0, 5, -1, -1, -9, -1, 1, 2, 3});
  EXPECT_EQ(b.refusal(), "");
  b = global_topk();
  set_integer(b, "block_size", 0);
  EXPECT_EQ(b.refusal(), kernel + "block_size: is 0, must be in 1..2147483647");
  b = global_topk();
  set_integer(b, "block_size", 1 << 28);
  EXPECT_EQ(b.refusal(), kernel +
                             "block_table: page 10, which token 0 takes, gives id 2684354560, ids "
                             "must fit an i32");
  b = global_topk();
  b.i32("token_to_req_indices", {2}, {0, 1});
  EXPECT_EQ(b.refusal(), kernel + "token_to_req_indices: dimension 0 (token) is 2, must be T = 3");
}

// --- combine_topk_swa_indices

call_builder combine() {
  call_builder b("combine_topk_swa_indices");
  // Requests of 2, 0 and 1 queries from token 0 on (the starts begin at 5); token 3 is padding.
  b.i32("topk_indices", {4, 3}, {4, -1, 6, 0, 9, 2, 1, 1, 1, 0, 0, 0});
  b.i32("query_start_loc", {4}, {5, 7, 7, 8});
  b.i32("seq_lens", {3}, {6, 9, 3});
  b.i32("gather_lens", {3}, {3, 4, 3});
  set_integer(b, "window_size", 4);
  set_integer(b, "compress_ratio", 2);
  set_integer(b, "topk", 3);
  set_integer(b, "M", 100);
  set_integer(b, "N", 6);
  return b;
}

TEST(combine_topk_swa, rows) {
  call_builder b = combine();
  b.run(nvidia);
  const auto rows = b.elements<std::int32_t>("combined_indices");
  ASSERT_EQ(rows.size(), 4U * 128U);
  // Token 0: position 4, top-k 5/2 = 2; window 1..4, gathered from 3 on: 3, 4.
  EXPECT_EQ(row_of(rows, 128, 0, 0, 5), (ints{4, -1, 6, 7, -1}));
  // Token 1: position 5, top-k 3 (9 is past N); window 3..5.
  EXPECT_EQ(row_of(rows, 128, 1, 0, 7), (ints{0, -1, 2, 6, 7, 8, -1}));
  // Token 2, request 2: position 2, top-k 1; window 0..2, gathered from 0 on.
  EXPECT_EQ(row_of(rows, 128, 2, 0, 5), (ints{201, 206, 207, 208, -1}));
  EXPECT_EQ(row_of(rows, 128, 3, 0, 128), ints(128, -1));
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(row_of(rows, 128, t, 7, 121), ints(121, -1));
  EXPECT_EQ(b.elements<std::int32_t>("combined_lens"), (ints{4, 6, 4, 0}));
}

TEST(combine_topk_swa, no_compression) {
  call_builder b = combine();
  set_integer(b, "compress_ratio", 0);
  b.run(nvidia);
  EXPECT_EQ(b.elements<std::int32_t>("combined_lens"), (ints{2, 3, 3, 0}));
}

TEST(combine_topk_swa, no_position_below_zero) {
  // More queries than tokens: the first position is -1.
  call_builder b = combine();
  b.i32("seq_lens", {3}, {1, 9, 3});
  b.i32("gather_lens", {3}, {1, 4, 3});
  b.run(nvidia);
  EXPECT_EQ(b.elements<std::int32_t>("combined_lens"), (ints{0, 1, 4, 0}));
}

TEST(combine_topk_swa, width_is_a_multiple_of_128) {
  call_builder b = combine();
  set_integer(b, "window_size", 126);
  b.run(nvidia);
  EXPECT_EQ(b.get().tensor("combined_indices").dim(1), 256);
}

TEST(combine_topk_swa, wrong_rules_show) {
  call_builder right = combine();
  right.run(nvidia);
  Rules rules = nvidia;
  rules.compact_topk = true;
  call_builder compacted = combine();
  compacted.run(rules);
  EXPECT_NE(compacted.bytes("combined_indices"), right.bytes("combined_indices"));
  rules = nvidia;
  rules.topk_length = [](std::int64_t position, std::int64_t ratio, std::int64_t) {
    return (position + 1) / ratio + 1000;
  };
  call_builder unlimited = combine();
  unlimited.run(rules);
  EXPECT_NE(unlimited.bytes("combined_lens"), right.bytes("combined_lens"));
}

TEST(combine_topk_swa, refusals) {
  const std::string kernel = "combine_topk_swa_indices: ";
  call_builder b = combine();
  b.i32("query_start_loc", {4}, {5, 7, 6, 8});
  EXPECT_EQ(b.refusal(), kernel + "query_start_loc: falls from 7 to 6 at request 1, must not fall");
  b.i32("query_start_loc", {4}, {5, 7, 7, 10});
  EXPECT_EQ(b.refusal(),
            kernel + "query_start_loc: request 2 ends at token 5, must end within the 4 tokens");
  b.i32("query_start_loc", {3}, {5, 7, 7});
  EXPECT_EQ(b.refusal(), kernel + "query_start_loc: dimension 0 (request) is 3, must be R + 1 = 4");
  b = combine();
  set_integer(b, "topk", 4);
  EXPECT_EQ(b.refusal(), kernel + "topk_indices: has 3 columns, must have the 4 of topk");
  set_integer(b, "topk", -1);
  EXPECT_EQ(b.refusal(), kernel + "topk: is -1, must be in 0..2147483647");
  b = combine();
  set_integer(b, "M", 2147483647);
  EXPECT_EQ(b.refusal(),
            kernel + "gather_lens: request 2 gives id 4294967302, ids must fit an i32");
  for (const char* name : {"window_size", "compress_ratio", "M", "N"}) {
    b = combine();
    set_integer(b, name, -1);
    EXPECT_EQ(b.refusal().find(kernel + name + ": is -1"), 0U) << b.refusal();
  }
}

// --- build_flashinfer_mixed_sparse_indices

// Two decode tokens (requests 0 and 1), then two prefill tokens of request 2.
call_builder mixed(bool local) {
  call_builder b("build_flashinfer_mixed_sparse_indices");
  b.i32("decode_swa_indices", {2, 3}, {9, -1, 4, 0, 1, -5});
  b.i32("decode_compressed_indices", {2, 2}, {5, -1, 0, 3});
  b.i32("prefill_topk_indices", {2, 3}, {2, -1, 1, 0, 4, 3});
  b.i32("query_start_loc", {4}, {0, 1, 2, 4});
  b.i32("seq_lens", {3}, {8, 9, 6});
  b.i32("token_to_req_indices", {4}, {0, 1, 2, 2});
  b.i32("swa_block_table", {3, 2}, {1, 2, 3, 4, 5, 6});
  b.i32("compressed_block_table", {3, 3}, {7, 8, 9, 10, -1, 12, 13, 14, 15});
  b.i32("replay_start", {3}, {0, 0, 4});
  set_integer(b, "swa_block_size", 4);
  set_integer(b, "compressed_block_size", 2);
  set_integer(b, "window_size", 3);
  set_integer(b, "compress_ratio", 2);
  set_integer(b, "topk", 5);
  set_integer(b, "decode_compressed_indices_are_local", local ? 1 : 0);
  if (local) {
    b.add("decode_is_valid_token", dtype::boolean, {2}, std::vector<std::uint8_t>{1, 0});
  }
  return b;
}

TEST(build_mixed_sparse, global_decode_indices) {
  call_builder b = mixed(false);
  b.run(nvidia);
  const auto rows = b.elements<std::int32_t>("sparse_indices");
  constexpr std::size_t width = 3 + 8;  // topk 5, padded to 8
  ASSERT_EQ(rows.size(), 4 * width);
  EXPECT_EQ(row_of(rows, width, 0, 0, width), (ints{9, -1, 4, 5, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(row_of(rows, width, 1, 0, width), (ints{0, 1, -1, 0, 3, -1, -1, -1, -1, -1, -1}));
  // Token 2: position 4; the window 2..4 begins at 4 (replay): 6*4 + 0. Top-k 5/2 = 2.
  EXPECT_EQ(row_of(rows, width, 2, 0, width), (ints{24, -1, -1, 28, -1, -1, -1, -1, -1, -1, -1}));
  // Token 3: position 5; 4, 5. Top-k 3: entries 0, 4, 3 of request 2.
  EXPECT_EQ(row_of(rows, width, 3, 0, width), (ints{24, 25, -1, 26, 30, 29, -1, -1, -1, -1, -1}));
  EXPECT_EQ(b.elements<std::int32_t>("sparse_topk_lens"), (ints{5, 5, 5, 6}));
}

TEST(build_mixed_sparse, given_lens_and_spans) {
  call_builder b = mixed(false);
  b.i32("decode_compressed_topk_lens", {3}, {1, 0, 99});
  set_integer(b, "swa_block_span", 10);
  set_integer(b, "compressed_block_span", 100);
  b.run(nvidia);
  const auto rows = b.elements<std::int32_t>("sparse_indices");
  EXPECT_EQ(row_of(rows, 11, 0, 0, 5), (ints{21, -1, 10, 201, -1}));
  EXPECT_EQ(row_of(rows, 11, 3, 0, 6), (ints{60, 61, -1, 1300, 1500, 1401}));
  EXPECT_EQ(b.elements<std::int32_t>("sparse_topk_lens"), (ints{4, 3, 5, 6}));
}

TEST(build_mixed_sparse, local_decode_indices) {
  call_builder b = mixed(true);
  b.i32("decode_compressed_topk_lens", {2}, {9, 9});  // not used
  b.run(nvidia);
  const auto rows = b.elements<std::int32_t>("sparse_indices");
  // Request 0, entry 5: page 9, 9*2 + 1. Request 1, entry 3: page -1 gives -1. The invalid token's
  // columns are not blanked, its length is 0.
  EXPECT_EQ(row_of(rows, 11, 0, 3, 3), (ints{19, -1, -1}));
  EXPECT_EQ(row_of(rows, 11, 1, 3, 3), (ints{20, -1, -1}));
  EXPECT_EQ(b.elements<std::int32_t>("sparse_topk_lens"), (ints{4, 3, 5, 6}));
}

TEST(build_mixed_sparse, without_compressed_arguments) {
  call_builder b = mixed(false);
  b.get().tensors.erase("decode_compressed_indices");
  b.get().tensors.erase("compressed_block_table");
  b.get().attributes.erase("decode_compressed_indices_are_local");
  set_integer(b, "topk", 2);
  b.i32("prefill_topk_indices", {2, 3}, {2, -1, 1, 0, 3, 99});
  b.run(nvidia);
  const auto rows = b.elements<std::int32_t>("sparse_indices");
  constexpr std::size_t width = 3 + 4;
  ASSERT_EQ(rows.size(), 4 * width);
  // The window's table serves: request 2 has pages 5 and 6. Past topk nothing is read.
  EXPECT_EQ(row_of(rows, width, 0, 3, 4), (ints{-1, -1, -1, -1}));
  EXPECT_EQ(row_of(rows, width, 2, 3, 4), (ints{12, -1, -1, -1}));
  EXPECT_EQ(row_of(rows, width, 3, 3, 4), (ints{10, 13, -1, -1}));
  EXPECT_EQ(b.elements<std::int32_t>("sparse_topk_lens"), (ints{3, 3, 5, 5}));
}

TEST(build_mixed_sparse, window_that_replay_leaves_empty) {
  call_builder b = mixed(false);
  b.i32("replay_start", {3}, {0, 0, 100});
  b.run(nvidia);
  const auto rows = b.elements<std::int32_t>("sparse_indices");
  EXPECT_EQ(row_of(rows, 11, 2, 0, 3), (ints{-1, -1, -1}));
  EXPECT_EQ(b.elements<std::int32_t>("sparse_topk_lens"), (ints{5, 5, 5, 6}));
}

TEST(build_mixed_sparse, zero_tokens) {
  call_builder b = mixed(false);
  b.get().tensors.erase("decode_compressed_indices");
  b.i32("decode_swa_indices", {0, 3}, {});
  b.i32("prefill_topk_indices", {0, 3}, {});
  b.i32("token_to_req_indices", {0}, {});
  b.run(nvidia);
  EXPECT_TRUE(b.elements<std::int32_t>("sparse_topk_lens").empty());
}

TEST(build_mixed_sparse, refusals) {
  const std::string kernel = "build_flashinfer_mixed_sparse_indices: ";
  call_builder b = mixed(false);
  set_integer(b, "window_size", 4);
  EXPECT_EQ(b.refusal(), kernel +
                             "decode_swa_indices: has 3 columns, must have at least the 4 of "
                             "window_size");
  b = mixed(false);
  b.i32("decode_compressed_topk_lens", {1}, {1});
  EXPECT_EQ(b.refusal(), kernel +
                             "decode_compressed_topk_lens: has 1 entries, must have at least the 2 "
                             "of the decode tokens");
  b = mixed(false);
  b.i32("token_to_req_indices", {3}, {0, 1, 2});
  EXPECT_EQ(b.refusal(), kernel +
                             "token_to_req_indices: has 3 entries, must have one for each of the 2 "
                             "decode and 2 prefill tokens");
  b = mixed(true);
  b.get().tensors.erase("decode_is_valid_token");
  EXPECT_EQ(b.refusal(), kernel +
                             "decode_is_valid_token: is missing, must be there where "
                             "decode_compressed_indices_are_local is 1");
  b.add("decode_is_valid_token", dtype::boolean, {1});
  EXPECT_EQ(b.refusal(), kernel +
                             "decode_is_valid_token: has 1 entries, must have at least the 2 of "
                             "the decode tokens");
  b = mixed(false);
  b.i32("seq_lens", {3}, {8, 9, 9});
  EXPECT_EQ(b.refusal(), kernel +
                             "seq_lens: index 8 of token 3 is past the table, must be below 2 "
                             "columns of swa_block_table * 4 entries");
  b.i32("seq_lens", {3}, {8, 9, 1});
  EXPECT_EQ(b.refusal(),
            kernel + "seq_lens: token 2 of request 2 has position -1, must not be negative");
  b = mixed(false);
  b.i32("token_to_req_indices", {4}, {0, 1, 3, 2});
  EXPECT_EQ(b.refusal(), kernel +
                             "token_to_req_indices: request 3 of token 2 is no row of "
                             "swa_block_table, must be in 0..2");
  b = mixed(false);
  b.i32("prefill_topk_indices", {2, 3}, {2, -1, 1, 0, 6, 3});
  EXPECT_EQ(b.refusal(), kernel +
                             "prefill_topk_indices: index 6 of token 3 is past the table, must be "
                             "below 3 columns of compressed_block_table * 2 entries");
  b = mixed(true);
  b.i32("decode_compressed_indices", {2, 2}, {6, -1, 0, 3});
  EXPECT_EQ(b.refusal(), kernel +
                             "decode_compressed_indices: index 6 of token 0 is past the table, "
                             "must be below 3 columns of compressed_block_table * 2 entries");
  b = mixed(false);
  set_integer(b, "swa_block_span", 2147483647);
  EXPECT_EQ(b.refusal(), kernel +
                             "decode_swa_indices: slot 9 of token 0 gives id 4294967295, ids must "
                             "fit an i32");
  for (const char* name :
       {"swa_block_size", "compressed_block_size", "swa_block_span", "compressed_block_span"}) {
    b = mixed(false);
    set_integer(b, name, 0);
    EXPECT_EQ(b.refusal(), kernel + name + ": is 0, must be in 1..2147483647");
  }
  for (const char* name : {"window_size", "compress_ratio", "topk"}) {
    b = mixed(false);
    set_integer(b, name, -1);
    EXPECT_EQ(b.refusal().find(kernel + name + ": is -1"), 0U) << b.refusal();
  }
}

}  // namespace
}  // namespace kvcts
