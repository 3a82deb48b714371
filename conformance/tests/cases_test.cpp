// The cases themselves: names, flags, contracts, reproducibility, and that the generators reach
// what the flags promise.
#include "conformance/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "conformance/cases/draw.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/ue8m0.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

class cases : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(kernels, cases,
                         ::testing::Values("mxfp4_q_quant", "mxfp4_k_norm_quant_insert",
                                           "mxfp4_fused_prologue", "indexer_k_norm_quant_insert",
                                           "dsa_fused_prologue", "quantize_and_insert_k_cache",
                                           "fused_q_kv_rmsnorm_quant"));

TEST_P(cases, have_different_names_and_known_flags) {
  std::set<std::string> known, names;
  for (const flag_text& f : flag_table()) {
    EXPECT_TRUE(known.emplace(f.flag).second) << f.flag << " is there twice";
    EXPECT_FALSE(f.meaning.empty());
  }
  for (const case_spec& spec : cases_of(GetParam(), level::exhaustive, 1)) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is there twice";
    for (const std::string& flag : spec.flags) {
      EXPECT_EQ(known.count(flag), 1u) << spec.name << ": " << flag;
    }
  }
}

TEST_P(cases, grow_with_the_level) {
  const auto smoke = cases_of(GetParam(), level::smoke, 1).size();
  const auto acceptance = cases_of(GetParam(), level::acceptance, 1).size();
  const auto exhaustive = cases_of(GetParam(), level::exhaustive, 1).size();
  EXPECT_GE(smoke, 15u);
  EXPECT_GE(acceptance, 100u);
  EXPECT_LT(smoke, acceptance);
  EXPECT_LT(acceptance, exhaustive);
}

TEST_P(cases, pass_the_contract_and_carry_their_spec) {
  for (const case_spec& spec : cases_of(GetParam(), level::acceptance, 1)) {
    test_case c = spec.build();
    EXPECT_EQ(c.kernel, GetParam());
    EXPECT_EQ(c.name, spec.name);
    EXPECT_EQ(c.flags, spec.flags);
    EXPECT_TRUE(c.expected.empty());
    EXPECT_NO_THROW(initial_results(contract_of(c.kernel), c.attributes, c.inputs, canary))
        << spec.name;
  }
}

TEST_P(cases, are_the_same_for_a_seed_and_others_for_another) {
  const auto once = cases_of(GetParam(), level::smoke, 5);
  const auto again = cases_of(GetParam(), level::smoke, 5);
  const auto other = cases_of(GetParam(), level::smoke, 6);
  ASSERT_EQ(once.size(), again.size());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(digest_of(once[i].build()), digest_of(again[i].build())) << once[i].name;
    changed += digest_of(once[i].build()) != digest_of(other[i].build());
  }
  EXPECT_GT(changed, once.size() / 2);
}

TEST(cases, of_the_insert_have_slots_that_differ) {
  for (const case_spec& spec : cases_of("quantize_and_insert_k_cache", level::acceptance, 1)) {
    const test_case c = spec.build();
    const tensor_view slots = c.input("slot_mapping")->view();
    std::set<std::int64_t> seen;
    std::int64_t negative = 0;
    for (std::int64_t i = 0; i < slots.dim(0); ++i) {
      const auto slot = load<std::int64_t>(slots.element(i));
      if (slot < 0) {
        ++negative;
      } else {
        EXPECT_TRUE(seen.insert(slot).second) << spec.name << ": slot " << slot << " twice";
      }
    }
    const bool flagged =
        std::find(spec.flags.begin(), spec.flags.end(), "NegativeSlot") != spec.flags.end();
    EXPECT_EQ(flagged, negative > 0) << spec.name;
  }
}

// The tables of midpoints, against the decoders: each lies exactly between two neighbouring codes.
TEST(generators, have_every_midpoint) {
  const block_rules e2m1 = e2m1_rules();
  ASSERT_EQ(e2m1.ties.size(), 7u);
  for (std::size_t code = 0; code < 7; ++code) {
    EXPECT_EQ(std::ldexp(static_cast<double>(e2m1.ties[code]), static_cast<int>(e2m1.tie_exponent)),
              (double{decode_e2m1(static_cast<std::uint8_t>(code))} +
               decode_e2m1(static_cast<std::uint8_t>(code + 1))) /
                  2);
  }
  for (const fp8_format format : {fp8_format::e4m3fn, fp8_format::e4m3fnuz}) {
    const block_rules e4m3 = e4m3_rules(format);
    ASSERT_EQ(e4m3.ties.size(), 0x7Eu);
    for (std::size_t code = 0; code < 0x7E; ++code) {
      EXPECT_EQ(
          std::ldexp(static_cast<double>(e4m3.ties[code]), static_cast<int>(e4m3.tie_exponent)),
          (double{decode_e4m3(static_cast<std::uint8_t>(code), format)} +
           decode_e4m3(static_cast<std::uint8_t>(code + 1), format)) /
              2);
    }
  }
}

TEST(generators, scale_integers_exactly) {
  EXPECT_EQ(decode_bf16(bf16_scaled(5, -2)), 1.25f);
  EXPECT_EQ(decode_bf16(bf16_scaled(7, -133)), 7 * 0x1p-133f);  // a subnormal
  EXPECT_EQ(decode_bf16(bf16_scaled(3, -134)), 0x1p-133f);      // truncated
  EXPECT_EQ(decode_bf16(bf16_scaled(1, -140)), 0.0f);
  EXPECT_EQ(bf16_scaled(1, 128), 0x7F7F);
  EXPECT_EQ(bf16_normal(true, 1, 64), 0xC040);  // -3
}

// Every code of the element formats, and nearly every scale that bf16 input reaches, is in the
// acceptance level's output: a suite whose outputs are all alike would pass anything.
TEST(generators, reach_every_code_and_scale) {
  std::set<int> codes, scales;
  for (const case_spec& spec : cases_of("mxfp4_q_quant", level::acceptance, 1)) {
    test_case c = spec.build();
    if (c.inputs[0].bytes.size() > std::size_t{1} << 18) continue;
    fill_expected(c, profile::nvidia);
    for (const std::byte b : c.expected[0].bytes) {
      codes.insert(static_cast<int>(b) & 15);
      codes.insert(static_cast<int>(b) >> 4);
    }
    for (const std::byte b : c.expected[1].bytes) scales.insert(static_cast<int>(b));
  }
  EXPECT_EQ(codes.size(), 16u);
  EXPECT_GE(scales.size(), 240u);  // 0 (padding), 1 .. 252, 254
}

}  // namespace
}  // namespace kvcts
