// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/tests/call_builder.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// One token, one head, P = 1; the values go to block 0 and the rest is 0.
struct one_head {
  std::uint8_t code[32];  // of block 0
  std::uint8_t scale[4];
};

one_head quantize(const std::vector<float>& values, profile p = profile::nvidia) {
  call_builder b("mxfp4_q_quant");
  std::vector<std::uint16_t> row(128, 0);
  for (std::size_t i = 0; i < values.size(); ++i) row[i] = encode_bf16(values[i]);
  b.add("index_q", dtype::bf16, {1, 1, 128}, row);
  b.add("index_weights", dtype::f32, {1, 1}, std::vector<float>{1.0F});
  b.get().attributes["weight_scale"] = 1.0;
  b.get().attributes["padded_num_heads"] = std::int64_t{1};
  b.run(rules_for(p));
  const auto packed = b.elements<std::uint8_t>("q_packed");
  const auto scale = b.elements<std::uint8_t>("q_scale");
  one_head head{};
  for (std::size_t i = 0; i < 32; ++i) {
    head.code[i] = static_cast<std::uint8_t>((packed[i / 2] >> (i % 2 * 4)) & 0xF);
  }
  std::memcpy(head.scale, b.get().tensor("q_scale").storage, 4);
  return head;
}

std::vector<int> codes(const one_head& head, std::size_t n) { return {head.code, head.code + n}; }

TEST(mxfp4_q_quant, scale_byte_and_code_of_amax) {
  struct row {
    float amax;
    int scale, code;
  };
  // e - 2 where the mantissa is at most 1.5, else e - 1.
  for (const row& r :
       {row{3.0F, 126, 7}, row{3.015625F, 127, 5}, row{3.5F, 127, 6}, row{4.0F, 127, 6},
        row{6.0F, 127, 7}, row{6.03125F, 128, 5}, row{7.0F, 128, 6}, row{8.0F, 128, 6},
        row{1.5F, 125, 7}, row{1.5078125F, 126, 5}, row{0x1.8p100F, 225, 7},
        row{0x1.82p100F, 226, 5}}) {
    const one_head head = quantize({r.amax});
    EXPECT_EQ(head.scale[0], r.scale) << r.amax;
    EXPECT_EQ(head.code[0], r.code) << r.amax;
    const one_head negative = quantize({0.0F, -r.amax});
    EXPECT_EQ(negative.scale[0], r.scale) << r.amax;
    EXPECT_EQ(negative.code[1], r.code + 8) << r.amax;
  }
}

TEST(mxfp4_q_quant, ties_go_to_the_even_code) {
  const one_head head = quantize({0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F, 6.0F, -0.25F,
                                  -0.75F, -1.25F, -1.75F, -2.5F, -3.5F, -5.0F, -6.0F});
  EXPECT_EQ(head.scale[0], 127);
  EXPECT_EQ(codes(head, 16),
            (std::vector<int>{0, 2, 2, 4, 4, 6, 6, 7, 8, 10, 10, 12, 12, 14, 14, 15}));
}

TEST(mxfp4_q_quant, even_dim_in_the_low_nibble) {
  call_builder b("mxfp4_q_quant");
  std::vector<std::uint16_t> row(128, 0);
  row[0] = encode_bf16(1.0F);
  row[1] = encode_bf16(6.0F);
  b.add("index_q", dtype::bf16, {1, 1, 128}, row);
  b.add("index_weights", dtype::f32, {1, 1}, std::vector<float>{1.0F});
  b.get().attributes["weight_scale"] = 1.0;
  b.get().attributes["padded_num_heads"] = std::int64_t{1};
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(b.elements<std::uint8_t>("q_packed")[0], 0x72);
}

TEST(mxfp4_q_quant, zero_block) {
  const one_head head = quantize({0.0F, -0.0F});
  EXPECT_EQ(codes(head, 4), (std::vector<int>{0, 8, 0, 0}));
  EXPECT_EQ(head.scale[0], 1);
  EXPECT_EQ(head.scale[3], 1);
}

TEST(mxfp4_q_quant, smallest_scale_is_2_to_minus_126) {
  // Below 6*2^-126 the floor decides; bf16 subnormals are not flushed.
  const float subnormal = decode_bf16(1);  // 2^-133
  EXPECT_EQ(quantize({subnormal}).scale[0], 1);
  EXPECT_EQ(quantize({subnormal}).code[0], 0);
  const one_head half = quantize({0x1p-127F, -0x1p-127F, 0x1.8p-127F});
  EXPECT_EQ(half.scale[0], 1);
  EXPECT_EQ(codes(half, 3), (std::vector<int>{1, 9, 2}));  // .5, -.5, .75 -> 1
  EXPECT_EQ(quantize({0x1.8p-124F}).scale[0], 1);
  EXPECT_EQ(quantize({0x1.82p-124F}).scale[0], 2);
}

TEST(mxfp4_q_quant, infinity_in_a_block) {
  const one_head head = quantize({inf, -inf, 1.0F, -1.0F, 0x1p127F, 0x1p126F, nan});
  EXPECT_EQ(head.scale[0], 254);
  // The rest is scaled by 2^-127: 2^127 -> 1, 2^126 -> .5.
  EXPECT_EQ(codes(head, 7), (std::vector<int>{7, 15, 0, 8, 2, 1, 7}));
  EXPECT_EQ(head.scale[1], 1);  // no other block is touched
}

TEST(mxfp4_q_quant, nan_is_ignored_by_amax_and_stored_as_7) {
  const one_head head = quantize({nan, 3.0F, -nan});
  EXPECT_EQ(head.scale[0], 126);
  EXPECT_EQ(codes(head, 4), (std::vector<int>{7, 7, 7, 0}));
  const one_head all = quantize(std::vector<float>(32, nan));
  EXPECT_EQ(all.scale[0], 1);
  EXPECT_EQ(codes(all, 32), std::vector<int>(32, 7));
}

TEST(mxfp4_q_quant, profiles_agree) {
  for (const float amax : {0x1.8p-126F, 0x1p-120F, 0.1F, 6.03125F, 0x1.fep127F, inf, nan}) {
    const std::vector<float> values = {amax, -amax, amax / 3, amax / 7, 1.0F};
    const one_head a = quantize(values, profile::nvidia);
    const one_head b = quantize(values, profile::ieee);
    EXPECT_EQ(codes(a, 32), codes(b, 32)) << amax;
    EXPECT_EQ(a.scale[0], b.scale[0]) << amax;
  }
}

TEST(mxfp4_q_quant, padded_heads_weights_and_layout) {
  call_builder b("mxfp4_q_quant");
  // T = 2, H = 2, P = 3, token stride 300, head stride 140, offset 5.
  tensor_view& q = b.add("index_q", dtype::bf16, {{2, 2, 128}, {300, 140, 1}, 5});
  for (std::int64_t t = 0; t < 2; ++t) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t d = 0; d < 128; ++d) {
        // Block k of this head has amax 6 * 2^(4t + 2h + k).
        const auto shift = static_cast<float>(std::int64_t{1} << (4 * t + 2 * h + d / 32));
        store(q.element(t, h, d), encode_bf16(d % 32 == 0 ? 6.0F * shift : 0.0F));
      }
    }
  }
  tensor_view& w = b.add("index_weights", dtype::bf16, {{2, 2}, {3, 1}, 1});
  store(w.element(0, 0), encode_bf16(2.0F));
  store(w.element(0, 1), encode_bf16(-0.0F));
  store(w.element(1, 0), encode_bf16(nan));
  store(w.element(1, 1), encode_bf16(-inf));
  b.get().attributes["weight_scale"] = 0.1;  // 0x3DCCCCCD in f32
  b.get().attributes["padded_num_heads"] = std::int64_t{3};
  b.run(rules_for(profile::nvidia));
  EXPECT_EQ(b.elements<std::uint32_t>("q_scale"),
            (std::vector<std::uint32_t>{0x8281807F, 0x84838281, 0, 0x86858483, 0x88878685, 0}));
  EXPECT_EQ(b.elements<std::uint32_t>("weights"),
            (std::vector<std::uint32_t>{0x3E4CCCCD, 0x80000000, 0, 0x7FFFFFFF, 0xFF800000, 0}));
  const auto packed = b.elements<std::uint8_t>("q_packed");
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const bool padded = i / 64 % 3 == 2;
    EXPECT_EQ(packed[i], !padded && i % 16 == 0 ? 0x07 : 0x00) << i;
  }
  // Guards behind the outputs stay.
  for (const char* name : {"q_packed", "q_scale", "weights"}) {
    const auto bytes = b.bytes(name);
    EXPECT_EQ(std::vector<std::uint8_t>(bytes.end() - 16, bytes.end()),
              std::vector<std::uint8_t>(16, 0xCC))
        << name;
  }
}

TEST(mxfp4_q_quant, f32_weights_are_multiplied_once) {
  call_builder b("mxfp4_q_quant");
  b.add("index_q", dtype::bf16, {1, 1, 128}, std::vector<std::uint16_t>(128, 0));
  b.add("index_weights", dtype::f32, {1, 1}, std::vector<float>{0x1.000002p0F});
  b.get().attributes["weight_scale"] = 3.0;
  b.get().attributes["padded_num_heads"] = std::int64_t{1};
  b.run(rules_for(profile::nvidia));
  // 3 + 3*2^-23 is half-way between 3 + 2^-22 and 3 + 2^-21: to the even one.
  EXPECT_EQ(b.elements<std::uint32_t>("weights")[0], 0x40400002U);
}

TEST(mxfp4_q_quant, zero_tokens_and_no_heads) {
  call_builder b("mxfp4_q_quant");
  b.add("index_q", dtype::bf16, {0, 4, 128});
  b.add("index_weights", dtype::f32, {0, 4});
  b.get().attributes["weight_scale"] = 1.0;
  b.get().attributes["padded_num_heads"] = std::int64_t{4};
  b.run(rules_for(profile::nvidia));
  EXPECT_TRUE(b.elements<std::uint8_t>("q_packed").empty());
  call_builder none("mxfp4_q_quant");
  none.add("index_q", dtype::bf16, {1, 0, 128});
  none.add("index_weights", dtype::f32, {1, 0});
  none.get().attributes["weight_scale"] = 1.0;
  none.get().attributes["padded_num_heads"] = std::int64_t{2};
  none.run(rules_for(profile::nvidia));
  EXPECT_EQ(none.elements<std::uint8_t>("q_packed"), std::vector<std::uint8_t>(128, 0));
}

}  // namespace
}  // namespace kvcts
