// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/tests/call_builder.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct inserted {
  call_builder call{"quantize_and_insert_k_cache"};
  std::vector<std::uint8_t> before, after;  // of the whole cache buffer
};

// Rows of 512 values; `strides` are those of k (0: dense) and of the pages (0: packed).
inserted insert(const std::vector<std::vector<float>>& rows, const std::vector<std::int64_t>& slots,
                std::int64_t record, bool fnuz = false, std::int64_t pages = 2,
                std::int64_t block_size = 2, std::int64_t page_gap = 0,
                const Rules& rules = rules_for(profile::nvidia)) {
  inserted result;
  call_builder& b = result.call;
  const auto n = static_cast<std::int64_t>(rows.size());
  tensor_view& k = b.add("k", dtype::bf16, {{n, 512}, {520, 1}, 3});
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t d = 0; d < 512; ++d) {
      const auto& values = rows[static_cast<std::size_t>(row)];
      const float x =
          d < static_cast<std::int64_t>(values.size()) ? values[static_cast<std::size_t>(d)] : 0.0F;
      store(k.element(row, d), encode_bf16(x));
    }
  }
  b.add("k_cache", dtype::u8,
        {{pages, block_size, record}, {block_size * record + page_gap, record, 1}, 8});
  b.i64("slot_mapping", slots);
  b.get().attributes["block_size"] = block_size;
  b.get().attributes["use_fnuz"] = std::int64_t{fnuz ? 1 : 0};
  b.get().attributes["bytes_per_token"] = record;
  result.before = b.bytes("k_cache");
  b.run(rules);
  result.after = b.bytes("k_cache");
  return result;
}

// Byte i of the one token inserted into slot 0 of one page of one token.
std::vector<std::uint8_t> record_of_row(const std::vector<float>& row, std::int64_t record,
                                        bool fnuz = false, profile p = profile::nvidia) {
  const inserted r = insert({row}, {0}, record, fnuz, 1, 1, 0, rules_for(p));
  return {r.after.begin() + 8, r.after.begin() + 8 + record};
}

std::vector<float> row_with(float value) { return std::vector<float>(1, value); }

TEST(quantize_and_insert, scale_byte_and_code_of_amax) {
  struct row {
    float amax;
    int scale, code;
  };
  for (const row& r : {row{448.0F, 127, 0x7E}, row{450.0F, 128, 0x76}, row{504.0F, 128, 0x78},
                       row{512.0F, 128, 0x78}, row{956.0F, 129, 0x77}, row{1.75F, 119, 0x7E},
                       row{1.7578125F, 120, 0x76}, row{1.0F, 119, 0x78},
                       row{0x1.fep127F, 247, 0x78}, row{0x1.cp127F, 246, 0x7E}}) {
    for (const profile p : {profile::nvidia, profile::ieee}) {
      const auto v4 = record_of_row(row_with(r.amax), 584, false, p);
      EXPECT_EQ(v4[576], r.scale) << r.amax;
      EXPECT_EQ(v4[0], r.code) << r.amax;
      const auto mxfp8 = record_of_row({0.0F, -r.amax}, 528, false, p);
      EXPECT_EQ(mxfp8[512], r.scale) << r.amax;
      EXPECT_EQ(mxfp8[1], r.code + 0x80) << r.amax;
    }
  }
}

TEST(quantize_and_insert, zero_and_tiny_blocks_have_byte_105) {
  const auto v4 = record_of_row({0.0F, -0.0F, 0x1p-20F, decode_bf16(1)}, 584);
  EXPECT_EQ(std::vector<int>(v4.begin(), v4.begin() + 4), (std::vector<int>{0, 0x80, 0x48, 0}));
  EXPECT_EQ(std::vector<int>(v4.begin() + 576, v4.end()),
            (std::vector<int>{105, 105, 105, 105, 105, 105, 105, 0}));
  const auto mxfp8 = record_of_row({}, 528);
  EXPECT_EQ(std::vector<int>(mxfp8.begin() + 512, mxfp8.end()), std::vector<int>(16, 105));
}

TEST(quantize_and_insert, element_rounding) {
  // amax 448 sets the scale to 1.
  const auto r = record_of_row({448.0F, 260.0F, 300.0F, 1.0625F, 1.1875F, 0x1p-10F, 0x1.8p-10F,
                                0x1.8p-9F, -0x1p-10F, 17.0F, 19.0F},
                               528);
  EXPECT_EQ(r[512], 127);
  EXPECT_EQ(std::vector<int>(r.begin(), r.begin() + 11),
            (std::vector<int>{0x7E, 0x78, 0x79, 0x38, 0x3A, 0x00, 0x01, 0x02, 0x80, 0x58, 0x5A}));
}

TEST(quantize_and_insert, infinity) {
  for (const std::int64_t record : {584, 528}) {
    const auto r = record_of_row({inf, -inf, 1.0F, -1.0F, nan}, record);
    EXPECT_EQ(r[record == 584 ? 576 : 512], 255);
    EXPECT_EQ(std::vector<int>(r.begin(), r.begin() + 5),
              (std::vector<int>{0x7E, 0x7E, 0x00, 0x80, 0x7E}));
  }
}

TEST(quantize_and_insert, nan) {
  for (const std::int64_t record : {584, 528}) {
    const auto r = record_of_row({nan, 448.0F, -nan}, record);
    EXPECT_EQ(r[record == 584 ? 576 : 512], 127);
    EXPECT_EQ(std::vector<int>(r.begin(), r.begin() + 4),
              (std::vector<int>{0x7E, 0x7E, 0x7E, 0x00}));
    const auto all = record_of_row(std::vector<float>(512, nan), record);
    EXPECT_EQ(all[record == 584 ? 576 : 512], 105);
    EXPECT_EQ(all[5], 0x7E);
  }
}

TEST(quantize_and_insert, scale_positions_are_told_apart) {
  std::vector<float> row(512, 0.0F);
  for (std::size_t d = 0; d < 512; d += 32) {
    row[d] = 448.0F * static_cast<float>(1 << (d / 32));  // byte 127 + d / 32
  }
  const auto mxfp8 = record_of_row(row, 528);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(mxfp8[static_cast<std::size_t>(512 + i)], 127 + i);
  const auto v4 = record_of_row(row, 584);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(v4[static_cast<std::size_t>(576 + i)], 128 + 2 * i);
  EXPECT_EQ(v4[583], 0);
}

TEST(quantize_and_insert, tail_of_584_is_copied_bit_for_bit) {
  call_builder b("quantize_and_insert_k_cache");
  std::vector<std::uint16_t> row(512, 0);
  for (std::size_t i = 0; i < 64; ++i) row[448 + i] = static_cast<std::uint16_t>(0x7F81 + 7 * i);
  row[510] = 0xFFC1;
  b.add("k", dtype::bf16, {1, 512}, row);
  b.add("k_cache", dtype::u8, {1, 1, 584});
  b.i64("slot_mapping", {0});
  b.get().attributes["block_size"] = std::int64_t{1};
  b.get().attributes["use_fnuz"] = std::int64_t{0};
  b.get().attributes["bytes_per_token"] = std::int64_t{584};
  b.run(rules_for(profile::nvidia));
  const auto bytes = b.bytes("k_cache");
  EXPECT_EQ(std::memcmp(bytes.data() + 448, row.data() + 448, 128), 0);
  EXPECT_EQ(bytes[576], 105);  // the tail's NaNs reach no scale
}

TEST(quantize_and_insert, fnuz) {
  // 1.0 alone: 224 * 2^-7 = 1.75 >= 1, so 2^-7; 128 -> 0x78.
  const auto one = record_of_row({1.0F, -0.0F, -1.0F}, 528, true);
  EXPECT_EQ(one[512], 120);
  EXPECT_EQ(std::vector<int>(one.begin(), one.begin() + 3), (std::vector<int>{0x78, 0x00, 0xF8}));
  // Scale 1: the limit is 224, 130 rounds to 128; -0 and underflow are 0x00, 0x80 is never written.
  const auto r = record_of_row({224.0F, 130.0F, 1.0F, -0x1p-12F, nan, -nan, 220.0F}, 584, true);
  EXPECT_EQ(r[576], 127);
  EXPECT_EQ(std::vector<int>(r.begin(), r.begin() + 7),
            (std::vector<int>{0x7E, 0x78, 0x40, 0x00, 0x7E, 0x7E, 0x7E}));
  // 240 is above the limit: the next scale, 120.
  const auto above = record_of_row({240.0F}, 584, true);
  EXPECT_EQ(above[576], 128);
  EXPECT_EQ(above[0], 0x77);
  for (const std::int64_t record : {584, 528}) {
    const auto zero = record_of_row({}, record, true);
    EXPECT_EQ(zero[record == 584 ? 576 : 512], 106);
    EXPECT_EQ(zero[0], 0x00);
    const auto infinite = record_of_row({inf, 1.0F, -1.0F}, record, true);
    EXPECT_EQ(infinite[record == 584 ? 576 : 512], 255);
    EXPECT_EQ(std::vector<int>(infinite.begin(), infinite.begin() + 3),
              (std::vector<int>{0x7E, 0x00, 0x00}));
  }
}

TEST(quantize_and_insert, negative_slots_and_rows_past_the_mapping_write_nothing) {
  const std::vector<std::vector<float>> rows(6, std::vector<float>(512, 1.0F));
  for (const std::int64_t record : {584, 528}) {
    const inserted r = insert(rows, {-1, -7, INT64_MIN}, record);
    EXPECT_EQ(r.after, r.before);
    const inserted none = insert(rows, {}, record);
    EXPECT_EQ(none.after, none.before);
  }
}

TEST(quantize_and_insert, only_the_owned_bytes_change) {
  // Pages of 2 tokens with a gap of 13 bytes; slots 0 and 3, the canary is 0xCC.
  const std::vector<std::vector<float>> rows = {std::vector<float>(512, 1.0F),
                                                std::vector<float>(512, 5.0F),
                                                std::vector<float>(512, 448.0F)};
  for (const std::int64_t record : {584, 528}) {
    const inserted r = insert(rows, {0, -1, 3}, record, false, 2, 2, 13);
    const std::size_t data = record == 584 ? 576 : 512;
    const std::size_t scales = static_cast<std::size_t>(record) - data;
    const std::size_t page = 2 * static_cast<std::size_t>(record) + 13;
    std::vector<std::uint8_t> expected(r.before.size(), 0xCC);
    const auto put = [&](std::size_t page_index, std::size_t position, std::uint8_t code,
                         std::uint8_t scale, float tail) {
      const std::size_t base = 8 + page_index * page;
      const std::size_t fp8 = record == 584 ? 448 : 512;
      for (std::size_t i = 0; i < fp8; ++i) expected[base + position * data + i] = code;
      for (std::size_t i = fp8; i < data; i += 2) {
        const std::uint16_t bits = encode_bf16(tail);
        std::memcpy(&expected[base + position * data + i], &bits, 2);
      }
      for (std::size_t i = 0; i < scales; ++i) {
        const bool pad = record == 584 && i == 7;
        expected[base + 2 * data + position * scales + i] = pad ? 0 : scale;
      }
    };
    put(0, 0, 0x78, 119, 1.0F);
    put(1, 1, 0x7E, 127, 448.0F);
    EXPECT_EQ(r.after, expected);
  }
}

TEST(quantize_and_insert, flat_page_view_writes_the_same) {
  const std::vector<float> row(512, 3.0F);
  inserted nested = insert({row}, {3}, 528);
  call_builder b("quantize_and_insert_k_cache");
  b.get() = nested.call.get();
  b.add("k_cache", dtype::u8, {{2, 2 * 528}, {2 * 528, 1}, 8});
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(b.bytes("k_cache"), nested.after);
}

TEST(quantize_and_insert, the_last_of_two_rows_with_one_slot_stays) {
  const inserted r =
      insert({std::vector<float>(512, 1.0F), std::vector<float>(512, 448.0F)}, {1, 1}, 528);
  EXPECT_EQ(r.after[8 + 512], 0x7E);
}

TEST(quantize_and_insert, wrong_rules_show) {
  const std::vector<std::vector<float>> rows(3, std::vector<float>(512, 1.0F));
  const auto with = [&](const Rules& rules) {
    return insert(rows, {0, -1}, 584, false, 2, 2, 0, rules).after;
  };
  const auto right = with(rules_for(profile::nvidia));
  Rules rules = rules_for(profile::nvidia);
  rules.write_pad_byte = false;
  EXPECT_NE(with(rules), right);
  rules = rules_for(profile::nvidia);
  rules.rows_past_mapping = true;
  EXPECT_NE(with(rules), right);
  rules = rules_for(profile::nvidia);
  rules.slot_is_live = [](std::int64_t) { return true; };
  EXPECT_NE(with(rules), right);
  rules = rules_for(profile::nvidia);
  // Addresses far outside the buffer are dropped, not written.
  rules.page_offset = [](std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
    return std::int64_t{1} << 60;
  };
  EXPECT_EQ(with(rules), insert(rows, {}, 584).before);
}

}  // namespace
}  // namespace kvcts
