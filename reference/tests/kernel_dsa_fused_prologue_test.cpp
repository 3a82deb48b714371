// The index keys of the prologues against those of the standalone kernels.
#include <gtest/gtest.h>

#include "reference/tests/key_calls.h"

namespace kvcts {
namespace {

struct pair_of_forms {
  const char* fused;
  const char* standalone;
};
constexpr pair_of_forms forms[] = {{"mxfp4_fused_prologue", "mxfp4_k_norm_quant_insert"},
                                   {"dsa_fused_prologue", "indexer_k_norm_quant_insert"}};

std::uint16_t hard_bits(std::int64_t t, std::int64_t i) {
  return key_bits(static_cast<std::uint64_t>(t * 4096 + i));
}

key_options many_keys(std::int64_t dims) {
  key_options o;
  o.dims = dims;
  o.tokens = 24;
  o.eps = 1e-6;
  o.weight = 1.25F;
  o.bias = 0.125F;
  o.pages = 13;
  o.slots.clear();
  for (std::int64_t t = 0; t < 22; ++t) o.slots.push_back(t % 5 == 4 ? -t : 25 - t);
  return o;
}

// The index cache that each form writes.
std::vector<std::uint8_t> fused_bytes(const char* kernel, const key_options& key,
                                      const Rules& rules) {
  prologue_options o;
  o.key = key;
  o.mla_cache = false;
  prologue_rows rows;
  rows.k = hard_bits;
  call_builder b = prologue_call(kernel, o, rows);
  b.run(rules);
  return b.bytes("index_cache");
}
std::vector<std::uint8_t> standalone_bytes(const char* kernel, const key_options& key,
                                           const Rules& rules) {
  call_builder b = standalone_call(kernel, key, hard_bits);
  b.run(rules);
  return b.bytes("kv_cache");
}

// Lets the low bits of d*r decide the codes, which rounding to 4 or 8 bits mostly hides.
Rules showing_low_bits(profile p) {
  Rules rules = rules_for(p);
  rules.scale_and_shift = [](float normalized, float, float) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &normalized, sizeof bits);
    return static_cast<float>(bits % 15 + 1);
  };
  return rules;
}

TEST(fused_and_standalone, equal_for_the_same_number_of_warps) {
  for (const pair_of_forms& form : forms) {
    for (const std::int64_t dims : {32, 64, 128, 256, 512, 1024}) {
      for (const profile p : {profile::nvidia, profile::ieee}) {
        for (const bool fnuz : {false, true}) {
          for (const std::int64_t warps : {1, 2, 4}) {
            key_options o = many_keys(dims);
            o.warps = warps;
            key_options alone = o;
            const bool fp8 = std::string(form.fused) == "dsa_fused_prologue";
            o.fnuz = fnuz;
            alone.fnuz = fnuz && fp8;  // MXFP4 keys have no FP8 format
            for (const Rules& rules : {rules_for(p), showing_low_bits(p)}) {
              ASSERT_EQ(fused_bytes(form.fused, o, rules),
                        standalone_bytes(form.standalone, alone, rules))
                  << form.fused << ", " << dims << " dims, " << warps << " warps";
            }
          }
        }
      }
    }
  }
}

TEST(fused_and_standalone, each_has_the_tree_of_its_own_launch) {
  const Rules rules = showing_low_bits(profile::nvidia);
  for (const pair_of_forms& form : forms) {
    key_options o = many_keys(128);
    const auto fused = fused_bytes(form.fused, o, rules);
    const auto alone = standalone_bytes(form.standalone, o, rules);
    EXPECT_NE(fused, alone);
    o.warps = 1;
    EXPECT_EQ(fused_bytes(form.fused, o, rules), alone);
    o.warps = 4;
    EXPECT_EQ(standalone_bytes(form.standalone, o, rules), fused);
    o.warps = 2;
    EXPECT_NE(fused_bytes(form.fused, o, rules), fused);
    EXPECT_NE(fused_bytes(form.fused, o, rules), alone);
  }
}

// num_warps is of the key's LayerNorm only.
TEST(fused_and_standalone, num_warps_does_not_move_the_row_norms) {
  Rules rules = rules_for(profile::nvidia);
  rules.scale_row = [](float x, float r, float) {
    std::uint32_t bits = 0;
    const float product = x * r;
    std::memcpy(&bits, &product, sizeof bits);
    return static_cast<float>(bits % 256);
  };
  const auto normed = [&](std::int64_t warps) {
    prologue_options o;
    o.key = many_keys(128);
    o.key.warps = warps;
    o.query_dims = 1536;
    prologue_rows rows;
    rows.q = rows.kv = hard_bits;
    call_builder b = prologue_call("dsa_fused_prologue", o, rows);
    b.get().tensors.erase("mla_cache");
    b.run(rules);
    return std::make_pair(b.bytes("q_c_normed"), b.bytes("kv_c_normed"));
  };
  EXPECT_EQ(normed(1), normed(4));
  EXPECT_EQ(normed(2), normed(0));
}

TEST(dsa_fused_prologue, a_hand_computed_key) {
  for (const bool fnuz : {false, true}) {
    prologue_options o;
    o.key.pages = o.key.block_size = 1;
    o.key.weight = 448;
    o.key.fnuz = fnuz;
    prologue_rows rows;
    rows.k = [](std::int64_t, std::int64_t i) {
      return static_cast<std::uint16_t>(i % 2 == 0 ? 0x3F80 : 0xBF80);
    };
    call_builder b = prologue_call("dsa_fused_prologue", o, rows);
    b.run(rules_for(profile::nvidia));
    const auto cache = b.bytes("index_cache");
    for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(cache[8 + i], i % 2 == 0 ? 0x7E : 0xFE);
    EXPECT_EQ(cache[8 + 130], fnuz ? 0 : 0x80);  // 2.0 or 1.0
    EXPECT_EQ(cache[8 + 131], fnuz ? 0x40 : 0x3F);
  }
}

TEST(dsa_fused_prologue, refuses_pages_that_misalign_scales) {
  prologue_options o;
  o.key.page_gap = 2;
  EXPECT_EQ(prologue_call("dsa_fused_prologue", o).refusal(),
            "dsa_fused_prologue: index_cache: page stride is 266 bytes, must be a multiple of 4 "
            "(f32 scales lie inside)");
  EXPECT_EQ(prologue_call("mxfp4_fused_prologue", o).refusal(), "");  // no f32 inside
}

}  // namespace
}  // namespace kvcts
