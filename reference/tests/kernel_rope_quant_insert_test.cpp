// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/tests/head_rows.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct problem {
  std::string record;
  std::vector<float> row = {};  // of every token; padded with zeros
  std::vector<std::int64_t> positions = {0};
  std::vector<std::int64_t> slots = {0};
  std::int64_t ratio = 1;
  std::int64_t pages = 1, block_size = 1, page_gap = 0, entry_gap = 0;  // in elements
  float fp8_scale = 1.0F;
};

std::int64_t elements_of(const std::string& record) {
  if (record == "v4") return 584;
  if (record == "v41_mxfp8") return 528;
  return record == "v41_nvfp4" ? 288 : 512;
}

call_builder call_of(const problem& p) {
  call_builder b("rope_quant_insert");
  const auto rows = static_cast<std::int64_t>(p.positions.size());
  tensor_view& latent = b.add("latent", dtype::bf16, {{rows, 512}, {514, 1}, 2});
  const auto bits = bf16_bits(p.row, 512);
  for (std::int64_t t = 0; t < rows; ++t) {
    std::memcpy(latent.element(t), bits.data(), 1024);
  }
  b.i64("positions", p.positions);
  add_turns(b, "cos_sin_cache", 4, 64);
  const std::int64_t entry = elements_of(p.record) + p.entry_gap;
  const dtype type = p.record == "bf16"  ? dtype::bf16
                     : p.record == "fp8" ? dtype::f8e4m3fn
                                         : dtype::u8;
  b.add("kv_cache", type,
        {{p.pages, p.block_size, elements_of(p.record)},
         {p.block_size * entry + p.page_gap, entry, 1},
         4});
  b.i64("slot_mapping", p.slots);
  if (p.record == "fp8") b.add("fp8_scale", dtype::f32, {1}, std::vector<float>{p.fp8_scale});
  b.get().attributes["compress_ratio"] = p.ratio;
  b.get().attributes["record"] = p.record;
  return b;
}

// The cache's bytes from page 0 on.
std::vector<std::uint8_t> cache_of(const problem& p, profile with = profile::nvidia) {
  call_builder b = call_of(p);
  b.run(rules_for(with));
  const auto bytes = b.bytes("kv_cache");
  return {bytes.begin() + 4 * (p.record == "bf16" ? 2 : 1), bytes.end()};
}

std::vector<float> ones() { return std::vector<float>(512, 1.0F); }

std::vector<std::uint16_t> halves(const std::vector<std::uint8_t>& bytes, std::size_t from,
                                  std::size_t count) {
  std::vector<std::uint16_t> found(count);
  std::memcpy(found.data(), bytes.data() + from, count * 2);
  return found;
}

TEST(rope_quant_insert, v4) {
  // 1 / 448: 2^-8, byte 119, 256 -> 0x78. The tail is -1, 1, -1, ... after a quarter turn.
  const auto r = cache_of({.record = "v4", .row = ones(), .positions = {1}});
  EXPECT_EQ(ints(r, 0, 448), std::vector<int>(448, 0x78));
  EXPECT_EQ(halves(r, 448, 4), (std::vector<std::uint16_t>{0xBF80, 0x3F80, 0xBF80, 0x3F80}));
  EXPECT_EQ(halves(r, 572, 2), (std::vector<std::uint16_t>{0xBF80, 0x3F80}));
  EXPECT_EQ(ints(r, 576, 8), (std::vector<int>{119, 119, 119, 119, 119, 119, 119, 0}));
  EXPECT_EQ(r[584], 0xCC);
}

TEST(rope_quant_insert, v4_takes_the_loaded_values) {
  std::vector<float> row = ones();
  row[0] = -0.0F;
  row[1] = -1.0F;
  row[64] = inf;
  const auto r = cache_of({.record = "v4", .row = row});
  EXPECT_EQ(ints(r, 0, 2), (std::vector<int>{0x80, 0xF8}));
  EXPECT_EQ(ints(r, 64, 2), (std::vector<int>{0x7E, 0x00}));
  EXPECT_EQ(ints(r, 576, 3), (std::vector<int>{119, 255, 119}));
}

TEST(rope_quant_insert, v41_mxfp8_rotates_first) {
  std::vector<float> row = ones();
  row[448] = 448.0F;
  row[0] = -0.0F;
  row[1] = -1.0F;  // the formula runs with c = 1, s = 0: +0
  const auto r = cache_of({.record = "v41_mxfp8", .row = row, .positions = {1}});
  EXPECT_EQ(ints(r, 0, 4), (std::vector<int>{0x00, 0xF8, 0x78, 0x78}));
  // Block 14 has the scale 1: -1 -> 0xB8, 448 -> 0x7E.
  EXPECT_EQ(ints(r, 448, 4), (std::vector<int>{0xB8, 0x7E, 0xB8, 0x38}));
  std::vector<int> scales(16, 119);
  scales[14] = 127;
  EXPECT_EQ(ints(r, 512, 16), scales);
  EXPECT_EQ(r[528], 0xCC);
}

TEST(rope_quant_insert, v41_mxfp8_does_not_round_the_rotation) {
  // 256 * 1.75 * (1 + 2^-10) = 448.4375 needs the scale 2.
  std::vector<float> row(512, 0.0F);
  row[448] = 256.0F;
  call_builder b = call_of({.record = "v41_mxfp8", .row = row});
  std::vector<float> table(64, 0.0F);
  table[0] = 0x1.c07p0F;
  b.add("cos_sin_cache", dtype::f32, {1, 64}, table);
  b.run(rules_for(profile::nvidia));
  const auto bytes = b.bytes("kv_cache");
  EXPECT_EQ(bytes[4 + 448], 0x76);
  EXPECT_EQ(bytes[4 + 512 + 14], 128);
}

TEST(rope_quant_insert, v41_nvfp4) {
  std::vector<float> row(512, 0.0F);
  row[0] = 6.0F;
  row[1] = -1.0F;
  row[16] = inf;
  row[18] = 448.0F;
  row[32] = 1.0F;
  for (std::size_t d = 48; d < 64; ++d) row[d] = nan;
  row[64] = 0x1p-20F;
  const auto r = cache_of({.record = "v41_nvfp4", .row = row});
  // 1; 448 (an infinity spoils its partner); 1/6 -> 0x23 (0.171875), 5.82 -> 6; NaN and tiny
  // blocks have 2^-9.
  EXPECT_EQ(ints(r, 256, 6), (std::vector<int>{0x38, 0x7E, 0x23, 0x01, 0x01, 0x01}));
  EXPECT_EQ(r[0], 0xA7);
  EXPECT_EQ(r[1], 0x00);
  EXPECT_EQ(ints(r, 8, 2), (std::vector<int>{0x77, 0x02}));
  EXPECT_EQ(r[16], 0x07);
  EXPECT_EQ(ints(r, 24, 8), std::vector<int>(8, 0x77));
  EXPECT_EQ(r[32], 0x00);
  EXPECT_EQ(r[288], 0xCC);
}

TEST(rope_quant_insert, v41_nvfp4_divides) {
  // Scale 7 * 2^-9 (byte 0x07): v / scale is just below the tie 1.75, v * (1 / scale) is not.
  std::vector<float> row(512, 0.0F);
  row[448] = 1.0F;
  row[450] = 1.0F;
  std::vector<float> table(64, 0.0F);
  table[0] = 0.02392577938735485F;
  table[1] = 0.08203125F;
  call_builder b = call_of({.record = "v41_nvfp4", .row = row});
  b.add("cos_sin_cache", dtype::f32, {1, 64}, table);
  b.run(rules_for(profile::nvidia));
  const auto bytes = b.bytes("kv_cache");
  EXPECT_EQ(bytes[4 + 256 + 28], 0x07);
  EXPECT_EQ(ints(bytes, 4 + 224, 2), (std::vector<int>{0x03, 0x07}));
}

TEST(rope_quant_insert, plain_bf16_rows) {
  std::vector<float> row = ones();
  row[0] = -0.0F;
  row[1] = -1.0F;
  row[2] = nan;
  const auto r = cache_of({.record = "bf16",
                           .row = row,
                           .positions = {0, 1},
                           .slots = {2, 1},
                           .pages = 2,
                           .block_size = 2,
                           .page_gap = 3,
                           .entry_gap = 1});
  // Pages of 2 * 513 + 3 elements.
  const std::size_t page_1 = (2 * 513 + 3) * 2;
  EXPECT_EQ(halves(r, page_1, 5), (std::vector<std::uint16_t>{0, 0xBF80, 0x7FFF, 0x7FFF, 0x3F80}));
  EXPECT_EQ(halves(r, page_1 + 2 * 448, 2), (std::vector<std::uint16_t>{0x3F80, 0x3F80}));
  EXPECT_EQ(halves(r, 2 * (513 + 448), 2), (std::vector<std::uint16_t>{0xBF80, 0x3F80}));
  EXPECT_EQ(ints(r, 0, 2 * 513), std::vector<int>(2 * 513, 0xCC));
  EXPECT_EQ(ints(r, 2 * (513 + 512), 2 * 4), std::vector<int>(2 * 4, 0xCC));
  EXPECT_EQ(ints(r, page_1 + 2 * 512, 2 * 513), std::vector<int>(2 * 513, 0xCC));
}

TEST(rope_quant_insert, plain_fp8_rows) {
  const std::vector<float> row = {1.0F, -1000.0F, 0.5F, 897.0F, inf, 1.0F, 0.0F, 0.0F, nan, 1.0F};
  const auto r = cache_of({.record = "fp8", .row = row, .fp8_scale = 2.0F});
  // 0.5, -448, 0.25, 448; an infinity or NaN in a pair: both 0x7E.
  EXPECT_EQ(ints(r, 0, 10),
            (std::vector<int>{0x30, 0xFE, 0x28, 0x7E, 0x7E, 0x7E, 0x00, 0x00, 0x7E, 0x7E}));
  EXPECT_EQ(r[512], 0xCC);
}

TEST(rope_quant_insert, plain_fp8_rows_go_through_bf16) {
  // 1.0625 + 2^-11 would be above the tie and round up to 1.125; its bf16 is the tie.
  std::vector<float> row(512, 0.0F);
  row[448] = 1.0F;
  std::vector<float> table(64, 0.0F);
  table[0] = 1.0625F + 0x1p-11F;
  call_builder b = call_of({.record = "fp8", .row = row});
  b.add("cos_sin_cache", dtype::f32, {1, 64}, table);
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(b.bytes("kv_cache")[4 + 448], 0x38);
}

TEST(rope_quant_insert, groups_of_two) {
  // Position 1 ends a group that begins at 0: no turn. 2 ends none. 3 begins at 2.
  const auto r = cache_of({.record = "bf16",
                           .row = ones(),
                           .positions = {1, 2, 3},
                           .slots = {0, 1, 2},
                           .ratio = 2,
                           .block_size = 3});
  EXPECT_EQ(halves(r, 0, 512), std::vector<std::uint16_t>(512, 0x3F80));
  EXPECT_EQ(ints(r, 1024, 1024), std::vector<int>(1024, 0xCC));
  EXPECT_EQ(halves(r, 2048, 512), std::vector<std::uint16_t>(512, 0x3F80));
}

TEST(rope_quant_insert, nothing_to_insert) {
  for (const char* record : {"v4", "v41_mxfp8", "v41_nvfp4", "bf16", "fp8"}) {
    const auto r = cache_of(
        {.record = record, .row = ones(), .positions = {0, 900, -3}, .slots = {-7, INT64_MIN}});
    EXPECT_EQ(r, std::vector<std::uint8_t>(r.size(), 0xCC)) << record;
    const auto none = cache_of({.record = record, .positions = {}, .slots = {}});
    EXPECT_EQ(none, std::vector<std::uint8_t>(none.size(), 0xCC)) << record;
  }
}

TEST(rope_quant_insert, segregated_pages_with_a_gap) {
  const auto r = cache_of({.record = "v41_nvfp4",
                           .row = std::vector<float>(512, 6.0F),
                           .slots = {3},
                           .pages = 2,
                           .block_size = 2,
                           .page_gap = 9});
  std::vector<std::uint8_t> expected(r.size(), 0xCC);
  const std::size_t page = 2 * 288 + 9;
  for (std::size_t i = 0; i < 256; ++i) expected[page + 256 + i] = 0x77;
  for (std::size_t i = 0; i < 32; ++i) expected[page + 512 + 32 + i] = 0x38;
  EXPECT_EQ(r, expected);
}

TEST(rope_quant_insert, refusals) {
  const std::string kernel = "rope_quant_insert: ";
  call_builder b = call_of({.record = "fp8"});
  b.get().tensors.erase("fp8_scale");
  EXPECT_EQ(b.refusal(), kernel + "fp8_scale: is missing, must be there for the record fp8");
  b = call_of({.record = "v4"});
  b.get().attributes["record"] = std::string("v41_mxfp8");
  EXPECT_EQ(b.refusal(),
            kernel + "kv_cache: has records of 584 bytes, must have 528 for the record v41_mxfp8");
  b = call_of({.record = "bf16"});
  b.add("kv_cache", dtype::u8, {1, 1, 512});
  EXPECT_EQ(b.refusal(), kernel + "kv_cache: dtype is u8, must be bf16");
  EXPECT_NE(call_of({.record = "v5"}).refusal(), "");
  EXPECT_EQ(call_of({.record = "v4", .ratio = 3}).refusal(),
            kernel + "compress_ratio: is 3, must be 1 or 2");
  EXPECT_NE(call_of({.record = "v4", .slots = {1}}).refusal(), "");
  EXPECT_NE(call_of({.record = "v4", .positions = {4}}).refusal(), "");
  EXPECT_EQ(call_of({.record = "v4", .positions = {4}, .ratio = 2}).refusal(), "");
  EXPECT_NE(call_of({.record = "v4", .slots = {0, 0}}).refusal(), "");
  EXPECT_NE(call_of({.record = "bf16", .pages = 2, .block_size = 2, .page_gap = -1}).refusal(), "");
}

}  // namespace
}  // namespace kvcts
