// Vectors worked out by hand from docs/numerics.md.
#include <gtest/gtest.h>

#include <limits>

#include "reference/layout/paged.h"
#include "reference/tests/head_rows.h"

namespace kvcts {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Rows of ones have r = 1 where eps is 0, so that the weights are the normalized rows.
struct problem {
  std::vector<float> q_weight, kv_weight;
  std::int64_t tokens = 1;
  float q = 1.0F, kv = 1.0F;
};

call_builder call_of(const problem& p) {
  call_builder b("fused_q_kv_rmsnorm_quant");
  const auto fill = [&](const std::string& name, std::int64_t width, float value) {
    tensor_view& v = b.add(name, dtype::bf16, {{p.tokens, width}, {width + 3, 1}, 1});
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      for (std::int64_t d = 0; d < width; ++d) store(v.element(t, d), encode_bf16(value));
    }
  };
  const auto q_width = static_cast<std::int64_t>(p.q_weight.size());
  const auto kv_width = static_cast<std::int64_t>(p.kv_weight.size());
  fill("qr", q_width, p.q);
  fill("kv", kv_width, p.kv);
  b.add("q_weight", dtype::f32, {q_width}, p.q_weight);
  b.add("kv_weight", dtype::bf16, {kv_width}, bf16_bits(p.kv_weight));
  b.get().attributes["eps"] = 0.0;
  return b;
}

call_builder run(const problem& p) {
  call_builder b = call_of(p);
  b.run(rules_for(profile::nvidia));
  return b;
}

std::vector<float> filled(std::size_t n, float value) { return std::vector<float>(n, value); }

TEST(fused_q_kv_rmsnorm_quant, rows_of_ones) {
  // 1 / 448 has a mantissa: 118 + 1; 256 -> 0x78.
  const call_builder b = run({.q_weight = filled(32, 1.0F), .kv_weight = filled(8, 3.0F)});
  EXPECT_EQ(ints(b.bytes("q_quant"), 0, 32), std::vector<int>(32, 0x78));
  std::vector<int> scales(512, 0);
  scales[0] = 119;
  EXPECT_EQ(ints(b.bytes("q_scales"), 0, 512), scales);
  EXPECT_EQ(b.elements<std::uint16_t>("kv_out"), std::vector<std::uint16_t>(8, 0x4040));
  EXPECT_EQ(ints(b.bytes("kv_out"), 16, 16), std::vector<int>(16, 0xCC));
}

TEST(fused_q_kv_rmsnorm_quant, integer_exponent) {
  struct row {
    float amax;
    int scale, code;
  };
  for (const row& r : {row{448.0F, 127, 0x7E}, row{450.0F, 128, 0x76}, row{896.0F, 128, 0x7E},
                       // 2^-118 / 448 is a subnormal above 2^-127: 1, and 2^-118 * 2^126.
                       row{0x1p-118F, 1, 0x78},
                       // Below it: 0, and the multiplier is 0.
                       row{0x1p-120F, 0, 0x00}, row{0.0F, 0, 0x00}, row{0x1.fep127F, 247, 0x78}}) {
    const call_builder b = run({.q_weight = filled(32, r.amax), .kv_weight = {1.0F}});
    EXPECT_EQ(b.bytes("q_scales")[0], r.scale) << r.amax;
    EXPECT_EQ(ints(b.bytes("q_quant"), 0, 32), std::vector<int>(32, r.code)) << r.amax;
  }
}

TEST(fused_q_kv_rmsnorm_quant, exponents_where_log2_is_rounded) {
  // The rounded log2 of an n just above 2^-8 is -8; the integer rule sees the mantissa. bf16 rows
  // do not reach such an n, so the rule is asked itself.
  const Rules rules = rules_for(profile::nvidia);
  EXPECT_EQ(rules.integer_scale(0x1.000002p-8F), 120);
  EXPECT_EQ(rules.integer_scale(0x1p-8F), 119);
  EXPECT_EQ(rules.scale_exponent(0x1.000002p-8F), -8.0F);
}

TEST(fused_q_kv_rmsnorm_quant, nan_and_infinity) {
  std::vector<float> weight = filled(64, 1.0F);
  weight[0] = inf;
  weight[3] = -448.0F;
  for (std::size_t d = 32; d < 64; ++d) weight[d] = nan;
  const call_builder b = run({.q_weight = weight, .kv_weight = {1.0F}});
  // Both have 254, whose multiplier is 0: an infinity becomes NaN, the rest signed zeros.
  EXPECT_EQ(ints(b.bytes("q_scales"), 0, 2), (std::vector<int>{254, 254}));
  EXPECT_EQ(ints(b.bytes("q_quant"), 0, 4), (std::vector<int>{0x7F, 0x00, 0x00, 0x80}));
  EXPECT_EQ(ints(b.bytes("q_quant"), 32, 32), std::vector<int>(32, 0x7F));
  weight = filled(32, 448.0F);
  weight[5] = nan;  // one NaN is ignored
  const call_builder one = run({.q_weight = weight, .kv_weight = {nan}});
  EXPECT_EQ(one.bytes("q_scales")[0], 127);
  EXPECT_EQ(ints(one.bytes("q_quant"), 4, 3), (std::vector<int>{0x7E, 0x7F, 0x7E}));
  EXPECT_EQ(one.elements<std::uint16_t>("kv_out")[0], 0x7FFF);
}

TEST(fused_q_kv_rmsnorm_quant, q_is_rounded_to_bf16_before_its_scale) {
  // 448 + 2^-6 is bf16 448.
  const call_builder b = run({.q_weight = filled(32, 448.015625F), .kv_weight = {1.0F}});
  EXPECT_EQ(b.bytes("q_scales")[0], 127);
  EXPECT_EQ(b.bytes("q_quant")[0], 0x7E);
}

TEST(fused_q_kv_rmsnorm_quant, swizzle_and_padding) {
  // 130 tokens and 5 blocks: padded to 256 rows and 8 blocks. Block g has the scale 2^g.
  std::vector<float> weight;
  for (int d = 0; d < 160; ++d) weight.push_back(448.0F * static_cast<float>(1 << d / 32));
  const call_builder b = run({.q_weight = weight, .kv_weight = {1.0F}, .tokens = 130});
  const auto bytes = b.bytes("q_scales");
  ASSERT_EQ(bytes.size(), 256U * 8 + 16);
  EXPECT_EQ(bytes[0], 127);
  EXPECT_EQ(bytes[1], 128);
  EXPECT_EQ(bytes[16], 127);               // row 1
  EXPECT_EQ(bytes[4], 127);                // row 32
  EXPECT_EQ(bytes[512], 131);              // block 4
  EXPECT_EQ(bytes[513], 0);                // block 5 is padding
  EXPECT_EQ(bytes[1024 + 512 + 16], 131);  // row 129, block 4
  EXPECT_EQ(bytes[1024 + 2 * 16], 0);      // row 130 is padding
  std::size_t live = 0;
  for (std::size_t i = 0; i < 2048; ++i) live += bytes[i] != 0 ? 1 : 0;
  EXPECT_EQ(live, 130U * 5);
  EXPECT_EQ(ints(bytes, 2048, 16), std::vector<int>(16, 0xCC));
}

TEST(fused_q_kv_rmsnorm_quant, one_launch_shape_for_both_rows) {
  const kernel_contract& contract = contract_of("fused_q_kv_rmsnorm_quant");
  struct shape {
    std::int64_t q, kv, padded;
    int warps;
  };
  for (const shape& s : {shape{1536, 512, 2048, 8}, shape{1024, 512, 1024, 4},
                         shape{32, 512, 512, 4}, shape{64, 1025, 2048, 8}}) {
    for (const char* name : {"RMSNorm of qr", "RMSNorm of kv"}) {
      const row_reduction r = row_of(contract.reduction(name), {{"Q", s.q}, {"K", s.kv}});
      EXPECT_EQ(r.padded, s.padded);
      EXPECT_EQ(r.warps, s.warps);
    }
  }
}

TEST(fused_q_kv_rmsnorm_quant, no_tokens) {
  const call_builder b =
      run({.q_weight = filled(32, 1.0F), .kv_weight = filled(4, 1.0F), .tokens = 0});
  EXPECT_EQ(ints(b.bytes("q_scales"), 0, 16), std::vector<int>(16, 0xCC));
}

TEST(fused_q_kv_rmsnorm_quant, refusals) {
  const std::string kernel = "fused_q_kv_rmsnorm_quant: ";
  EXPECT_EQ(call_of({.q_weight = filled(48, 1.0F), .kv_weight = {1.0F}}).refusal(),
            kernel + "qr: has rows of 48, must be a positive multiple of 32");
  EXPECT_NE(call_of({.q_weight = {}, .kv_weight = {1.0F}}).refusal(), "");
  EXPECT_EQ(call_of({.q_weight = filled(32, 1.0F), .kv_weight = {}}).refusal(),
            kernel + "kv: has rows of 0, must be at least 1");
  call_builder b = call_of({.q_weight = filled(32, 1.0F), .kv_weight = {1.0F}});
  b.add("kv", dtype::bf16, {2, 1});
  EXPECT_EQ(b.refusal(), kernel + "kv: dimension 0 (token) is 2, must be T = 1");
}

}  // namespace
}  // namespace kvcts
