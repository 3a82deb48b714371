// docs/kernels.md, fused_layout: permutations by hand, and every refusal.
#include <gtest/gtest.h>

#include <numeric>

#include "reference/tests/call_builder.h"

namespace kvcts {
namespace {

call_builder layout(const char* op, std::int64_t heads, std::int64_t head_dim,
                    std::vector<std::int64_t> shape) {
  call_builder b("fused_layout");
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count(shape)));
  std::iota(numbers.begin(), numbers.end(), 0);
  b.add("x", dtype::i32, std::move(shape), numbers);
  b.get().attributes["op"] = std::string(op);
  b.get().attributes["heads"] = heads;
  b.get().attributes["head_dim"] = head_dim;
  return b;
}

std::vector<std::int32_t> fused(call_builder b) {
  b.run(rules_for(profile::nvidia));
  return b.elements<std::int32_t>("y");
}

TEST(fused_layout, q_takes_16_dims_of_every_head) {
  const auto y = fused(layout("q", 3, 32, {96}));
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[15], 15);
  EXPECT_EQ(y[16], 32);      // head 1, dim 0
  EXPECT_EQ(y[32 + 5], 69);  // head 2, dim 5
  EXPECT_EQ(y[48], 16);      // head 0, dim 16
  EXPECT_EQ(y[95], 95);
}

TEST(fused_layout, o_takes_chunks_of_32_of_every_head_of_a_group) {
  const auto y = fused(layout("o", 2, 64, {256}));  // two groups
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[32], 64);    // head 1, chunk 0
  EXPECT_EQ(y[64], 32);    // head 0, chunk 1
  EXPECT_EQ(y[96], 96);    // head 1, chunk 1
  EXPECT_EQ(y[128], 128);  // the second group
  EXPECT_EQ(y[128 + 33], 128 + 65);
}

TEST(fused_layout, o_chunk_is_the_same_for_scales) {
  EXPECT_EQ(fused(layout("o_chunk", 2, 96, {6})), (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  // A row of a scale tensor moves as a whole.
  EXPECT_EQ(fused(layout("o_chunk", 2, 64, {4, 2})),
            (std::vector<std::int32_t>{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(fused_layout, further_dimensions_and_dtype_follow_x) {
  call_builder b("fused_layout");
  b.add("x", dtype::f8e4m3fn, {64, 3, 5});
  b.get().attributes["op"] = std::string("q");
  b.get().attributes["heads"] = std::int64_t{2};
  b.get().attributes["head_dim"] = std::int64_t{32};
  for (std::size_t i = 0; i < 64 * 15; ++i) {
    b.get().tensor("x").storage[i] = static_cast<std::byte>(i / 15);
  }
  b.run(rules_for(profile::nvidia));
  const tensor_view& y = b.get().tensor("y");
  EXPECT_EQ(y.type, dtype::f8e4m3fn);
  EXPECT_EQ(y.at.shape, (std::vector<std::int64_t>{64, 3, 5}));
  EXPECT_EQ(std::to_integer<int>(y.storage[16 * 15 + 14]), 32);
  b.add("y", dtype::u8, {64, 3, 5});
  EXPECT_EQ(b.refusal(true), "fused_layout: y: dtype is u8, must be f8e4m3fn");
  b.add("y", dtype::f8e4m3fn, {64, 15});
  EXPECT_EQ(b.refusal(true), "fused_layout: y: further dimensions are [15], must be [3, 5]");
}

TEST(fused_layout, refusals) {
  EXPECT_EQ(layout("k", 1, 32, {32}).refusal(),
            "fused_layout: op: is 'k', must be 'q' or 'o' or 'o_chunk'");
  EXPECT_EQ(layout("q", 2, 24, {48}).refusal(),
            "fused_layout: head_dim: is 24, must be a multiple of 16 for op q");
  EXPECT_EQ(layout("o_chunk", 2, 48, {96}).refusal(),
            "fused_layout: head_dim: is 48, must be a multiple of 32 for op o_chunk");
  EXPECT_EQ(layout("q", 2, 32, {128}).refusal(),
            "fused_layout: x: has 128 rows, must have 2 heads * 32 dims");
  EXPECT_EQ(layout("o", 2, 32, {96}).refusal(),
            "fused_layout: x: has 96 rows, must have whole groups of 2 heads * 32 dims");
  EXPECT_EQ(layout("o_chunk", 2, 64, {6}).refusal(),
            "fused_layout: x: has 6 rows, must have whole groups of 2 heads, a row for each 32 of "
            "64 dims");
  EXPECT_EQ(layout("q", 0, 32, {0}).refusal(),
            "fused_layout: heads: is 0, must be in 1..2147483647");
  EXPECT_EQ(layout("q", 1, 0, {0}).refusal(),
            "fused_layout: head_dim: is 0, must be in 1..2147483647");
}

}  // namespace
}  // namespace kvcts
