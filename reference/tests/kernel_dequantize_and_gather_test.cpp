// Vectors worked out by hand from docs/numerics.md, "dequantize_and_gather_k_cache".
#include <gtest/gtest.h>

#include "reference/tests/call_builder.h"

namespace kvcts {
namespace {

const Rules nvidia = rules_for(profile::nvidia);

struct record_bytes {
  std::int64_t record, data;
};
constexpr record_bytes v4 = {584, 576};
constexpr record_bytes mxfp8 = {528, 512};
constexpr record_bytes nvfp4 = {288, 256};

// One request over `pages` pages of 2 tokens, guards 8 bytes before and a gap of 6 after each page.
// All bytes are 0, so that a byte set by hand stands alone.
struct gather {
  call_builder b{"dequantize_and_gather_k_cache"};
  record_bytes form;

  explicit gather(record_bytes form_, bool fnuz = false, std::int64_t pages = 3) : form(form_) {
    tensor_view& cache = b.add("k_cache", dtype::u8,
                               {{pages, 2, form.record}, {2 * form.record + 6, form.record, 1}, 8});
    std::memset(cache.storage, 0, cache.storage_bytes);
    b.add("out", dtype::bf16, {{1, 6, 512}, {6 * 520, 520, 1}, 4});
    b.i32("seq_lens", {1}, {1});
    b.i32("block_table", {1, 3}, {0, 1, 2});
    b.get().attributes["block_size"] = std::int64_t{2};
    b.get().attributes["offset"] = std::int64_t{0};
    b.get().attributes["use_fnuz"] = std::int64_t{fnuz ? 1 : 0};
  }
  std::byte* page(std::int64_t p) {
    const tensor_view& cache = b.get().tensor("k_cache");
    return cache.storage + 8 + p * cache.stride(0);
  }
  void data(std::int64_t p, std::int64_t position, std::int64_t index, int byte) {
    page(p)[position * form.data + index] = static_cast<std::byte>(byte);
  }
  void scale(std::int64_t p, std::int64_t position, std::int64_t index, int byte) {
    page(p)[2 * form.data + position * (form.record - form.data) + index] =
        static_cast<std::byte>(byte);
  }
  int out(std::int64_t row, std::int64_t dim) const {
    return load<std::uint16_t>(
        const_cast<call_builder&>(b).get().tensor("out").element(0, row, dim));
  }
};

TEST(dequantize_and_gather, v4_values_scales_and_tail) {
  gather g(v4);
  g.data(0, 0, 0, 0x38);    // 1.0
  g.data(0, 0, 64, 0xB8);   // -1.0, block 1
  g.data(0, 0, 447, 0x7E);  // 448, block 6
  g.scale(0, 0, 0, 127);
  g.scale(0, 0, 1, 130);
  g.scale(0, 0, 6, 126);
  g.scale(0, 0, 7, 255);    // the pad byte scales nothing
  g.data(0, 0, 448, 0x81);  // a NaN's payload is copied
  g.data(0, 0, 449, 0x7F);
  g.data(0, 0, 575, 0x80);  // -0
  g.b.run(nvidia);
  EXPECT_EQ(g.out(0, 0), 0x3F80);
  EXPECT_EQ(g.out(0, 64), 0xC100);
  EXPECT_EQ(g.out(0, 447), 0x4360);
  EXPECT_EQ(g.out(0, 448), 0x7F81);
  EXPECT_EQ(g.out(0, 511), 0x8000);
  EXPECT_EQ(g.out(0, 1), 0);
}

TEST(dequantize_and_gather, scale_bytes_0_and_255_follow_the_profile) {
  for (const profile p : {profile::nvidia, profile::ieee}) {
    gather g(mxfp8);
    g.data(0, 0, 0, 0x38);
    g.scale(0, 0, 0, 0);
    g.data(0, 0, 32, 0x38);
    g.data(0, 0, 33, 0x80);
    g.scale(0, 0, 1, 255);
    g.data(0, 0, 64, 0x7F);
    g.data(0, 0, 65, 0xFF);
    g.scale(0, 0, 2, 127);
    g.data(0, 0, 96, 0x01);  // 2^-9 * 2^-124 = 2^-133, the smallest bf16
    g.scale(0, 0, 3, 3);
    // .75, .5 and 1.5 of the smallest bf16: nearest, ties to even.
    g.data(0, 0, 128, 0x03);
    g.data(0, 0, 129, 0x02);
    g.data(0, 0, 130, 0x06);
    g.scale(0, 0, 4, 1);
    g.b.run(rules_for(p));
    EXPECT_EQ(g.out(0, 0), p == profile::nvidia ? 0x0000 : 0x0040);
    EXPECT_EQ(g.out(0, 32), p == profile::nvidia ? 0x7F80 : 0x7FFF);
    EXPECT_EQ(g.out(0, 33), 0x7FFF);  // 0 * inf, or NaN
    EXPECT_EQ(g.out(0, 64), 0x7FFF);
    EXPECT_EQ(g.out(0, 65), 0x7FFF);
    EXPECT_EQ(g.out(0, 96), 0x0001);
    EXPECT_EQ(g.out(0, 128), 0x0001);
    EXPECT_EQ(g.out(0, 129), 0x0000);
    EXPECT_EQ(g.out(0, 130), 0x0002);
  }
}

TEST(dequantize_and_gather, fnuz_has_another_table) {
  gather g(mxfp8, true);
  g.data(0, 0, 0, 0x40);
  g.data(0, 0, 1, 0x80);
  g.data(0, 0, 2, 0x7F);
  g.scale(0, 0, 0, 127);
  g.b.run(nvidia);
  EXPECT_EQ(g.out(0, 0), 0x3F80);
  EXPECT_EQ(g.out(0, 1), 0x7FFF);
  EXPECT_EQ(g.out(0, 2), 0x4370);  // 240
}

TEST(dequantize_and_gather, nvfp4) {
  gather g(nvfp4);
  g.data(0, 0, 0, 0x72);  // 1.0, 6.0
  g.data(0, 0, 1, 0x8F);  // -6, code 8: +0
  g.scale(0, 0, 0, 0x38);
  g.data(0, 0, 8, 0x91);   // dims 16, 17: .5, -.5
  g.scale(0, 0, 1, 0x01);  // 2^-9, a subnormal of E4M3
  g.data(0, 0, 16, 0x82);  // dims 32, 33
  g.scale(0, 0, 2, 0xC0);  // -2
  g.scale(0, 0, 3, 0x7F);
  g.scale(0, 0, 31, 0xFF);
  g.b.run(nvidia);
  EXPECT_EQ(g.out(0, 0), 0x3F80);
  EXPECT_EQ(g.out(0, 1), 0x40C0);
  EXPECT_EQ(g.out(0, 2), 0xC0C0);
  EXPECT_EQ(g.out(0, 3), 0x0000);
  EXPECT_EQ(g.out(0, 16), 0x3A80);
  EXPECT_EQ(g.out(0, 17), 0xBA80);
  EXPECT_EQ(g.out(0, 32), 0xC000);
  EXPECT_EQ(g.out(0, 33), 0x8000);  // +0 * -2
  EXPECT_EQ(g.out(0, 48), 0x7FFF);
  EXPECT_EQ(g.out(0, 511), 0x7FFF);
}

TEST(dequantize_and_gather, positions_pages_and_the_rest_of_out) {
  gather g(mxfp8);
  // 5 tokens, the last 3 gathered: positions 2, 3, 4 in pages 2, 2, 1 of the table {0, 2, 1}.
  g.b.i32("seq_lens", {1}, {5});
  g.b.i32("gather_lens", {1}, {3});
  g.b.i32("block_table", {1, 3}, {0, 2, 1});
  g.b.get().attributes["offset"] = std::int64_t{2};
  for (const auto& [page, position, code] : {std::tuple{2, 0, 0x38}, {2, 1, 0x40}, {1, 0, 0x48}}) {
    g.data(page, position, 511, code);
    g.scale(page, position, 15, 127);
  }
  const auto before = g.b.bytes("out");
  g.b.run(nvidia);
  EXPECT_EQ(g.out(2, 511), 0x3F80);
  EXPECT_EQ(g.out(3, 511), 0x4000);
  EXPECT_EQ(g.out(4, 511), 0x4080);
  const auto after = g.b.bytes("out");
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::size_t element = i / 2 - 4;
    const bool written = i >= 8 && element / 520 >= 2 && element / 520 < 5 && element % 520 < 512;
    if (!written) {
      EXPECT_EQ(after[i], before[i]) << i;
    }
  }
}

TEST(dequantize_and_gather, nothing_to_gather) {
  for (const int gather_len : {0, -3}) {
    gather g(v4);
    g.b.i32("gather_lens", {1}, {gather_len});
    const auto before = g.b.bytes("out");
    g.b.run(nvidia);
    EXPECT_EQ(g.b.bytes("out"), before);
  }
}

TEST(dequantize_and_gather, refusals) {
  const std::string kernel = "dequantize_and_gather_k_cache: ";
  gather g(v4);
  g.b.i32("gather_lens", {1}, {2});
  EXPECT_EQ(g.b.refusal(),
            kernel + "gather_lens: request 0 gathers 2 tokens, must gather at most its 1");
  gather rows(v4);
  rows.b.i32("seq_lens", {1}, {4});
  rows.b.get().attributes["offset"] = std::int64_t{3};
  EXPECT_EQ(
      rows.b.refusal(),
      kernel + "seq_lens: request 0 gathers 4 tokens to row 3 on, must fit the 6 rows of out");
  gather table(v4);
  table.b.i32("seq_lens", {1}, {7});
  table.b.i32("gather_lens", {1}, {1});
  EXPECT_EQ(table.b.refusal(), kernel +
                                   "seq_lens: request 0 has 7 tokens, must have at most 3 columns "
                                   "of block_table * 2");
  gather page(v4);
  page.b.i32("block_table", {1, 3}, {-1, 1, 2});
  EXPECT_EQ(page.b.refusal(), kernel +
                                  "block_table: page -1 of request 0, column 0 is not in the "
                                  "cache, must be in 0..2");
  page.b.i32("block_table", {1, 3}, {3, 1, 2});
  EXPECT_NE(page.b.refusal(), "");
  // Columns that no gathered position needs are not looked at.
  page.b.i32("block_table", {1, 3}, {0, -1, 99});
  EXPECT_EQ(page.b.refusal(), "");
  gather record(v4);
  record.b.add("k_cache", dtype::u8, {3, 2, 132});
  EXPECT_EQ(record.b.refusal(),
            kernel + "k_cache: has records of 132 bytes, must be 584, 528 or 288");
  record.b.add("k_cache", dtype::u8, {3, 4, 584});
  EXPECT_EQ(record.b.refusal(),
            kernel + "k_cache: dimension 1 (position) is 4, must be block_size = 2");
  // Only an attribute could tell the record of a flat page view.
  record.b.add("k_cache", dtype::u8, {3, 2 * 584});
  EXPECT_EQ(record.b.refusal(), kernel +
                                    "k_cache: shape is [3, 1168], must be [blocks, block_size, "
                                    "record_bytes] (page, position, byte)");
  gather fnuz(nvfp4, true);
  EXPECT_EQ(fnuz.b.refusal(), kernel +
                                  "use_fnuz: is 1 for records of 288 bytes, must be 0: their "
                                  "scales are OCP E4M3");
  gather size(v4);
  size.b.get().attributes["block_size"] = std::int64_t{0};
  EXPECT_EQ(size.b.refusal(), kernel + "block_size: is 0, must be at least 1");
  gather offset(v4);
  offset.b.get().attributes["offset"] = std::int64_t{-1};
  EXPECT_EQ(offset.b.refusal(), kernel + "offset: is -1, must be in 0..4611686018427387904");
  offset.b.get().attributes["offset"] = INT64_MAX;
  EXPECT_EQ(offset.b.refusal(),
            kernel + "offset: is 9223372036854775807, must be in 0..4611686018427387904");
}

}  // namespace
}  // namespace kvcts
