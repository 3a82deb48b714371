// The cases themselves: names, flags, contracts, reproducibility, and that the generators reach
// what the flags promise.
#include "conformance/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "conformance/cases/draw.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "reference/contract/pages.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/ue8m0.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using testing_tools::every_kernel;

class cases : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(kernels, cases, ::testing::ValuesIn(every_kernel()),
                         [](const auto& info) { return info.param; });

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
  EXPECT_GE(smoke, 5u);
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

class inserts : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(kernels, inserts,
                         ::testing::Values("quantize_and_insert_k_cache",
                                           "indexer_k_norm_rope_store", "rope_quant_insert"));

TEST_P(inserts, have_slots_that_differ) {
  for (const case_spec& spec : cases_of(GetParam(), level::acceptance, 1)) {
    const test_case c = spec.build();
    const buffer* kv_slots = c.input("kv_slot_mapping");
    const tensor_view slots = (kv_slots != nullptr ? kv_slots : c.input("slot_mapping"))->view();
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

// What the gather reads: every pair of element code and scale byte, of each record and table.
TEST(generators, reach_every_pair_that_a_gather_reads) {
  struct form {
    std::size_t data, scales, codes, block, codes_a_byte;
  };
  const std::map<std::size_t, form> forms = {
      {584, {576, 8, 448, 64, 1}}, {528, {512, 16, 512, 32, 1}}, {288, {256, 32, 512, 16, 2}}};
  // By record and table.
  std::map<std::pair<std::size_t, bool>, std::set<std::pair<int, int>>> pairs;
  for (const case_spec& spec : cases_of("dequantize_and_gather_k_cache", level::acceptance, 1)) {
    const test_case c = spec.build();
    const tensor_view cache = c.input("k_cache")->view();
    const tensor_view table = c.input("block_table")->view();
    const tensor_view seq_lens = c.input("seq_lens")->view();
    const buffer* gather_lens = c.input("gather_lens");
    const auto record = static_cast<std::size_t>(cache.dim(2));
    const form& f = forms.at(record);
    auto& met = pairs[{record, std::get<std::int64_t>(c.attributes.at("use_fnuz")) != 0}];
    for (std::int64_t r = 0; r < seq_lens.dim(0); ++r) {
      const std::int64_t end = load<std::int32_t>(seq_lens.element(r));
      const std::int64_t n =
          gather_lens == nullptr ? end : load<std::int32_t>(gather_lens->view().element(r));
      for (std::int64_t p = end - n; p < end; ++p) {
        const std::int64_t page = load<std::int32_t>(table.element(r, p / cache.dim(1)));
        const auto token = static_cast<std::size_t>(p % cache.dim(1));
        const std::byte* const start = cache.element(page);
        const std::byte* const data = start + token * f.data;
        const std::byte* const scales =
            start + static_cast<std::size_t>(cache.dim(1)) * f.data + token * f.scales;
        for (std::size_t d = 0; d < f.codes; ++d) {
          const int byte = std::to_integer<int>(data[d / f.codes_a_byte]);
          const int code = f.codes_a_byte == 1 ? byte : d % 2 == 0 ? byte & 15 : byte >> 4;
          met.emplace(code, std::to_integer<int>(scales[d / f.block]));
        }
      }
    }
  }
  ASSERT_EQ(pairs.size(), 5u);
  for (const auto& [which, met] : pairs) {
    EXPECT_EQ(met.size(), which.first == 288 ? 4096u : 65536u)
        << which.first << (which.second ? " FNUZ" : "");
  }
}

// A permutation shows only where rows differ.
TEST(generators, move_rows_of_every_layout) {
  std::map<std::string, int> moved;
  for (const case_spec& spec : cases_of("fused_layout", level::smoke, 1)) {
    test_case c = spec.build();
    fill_expected(c, profile::nvidia);
    const tensor_view x = c.inputs[0].view();
    const std::vector<std::byte>& y = c.expected[0].bytes;
    const auto element = static_cast<std::int64_t>(size_of(x.type));
    moved[std::get<std::string>(c.attributes.at("op"))] +=
        !std::equal(y.begin(), y.end(), x.storage + x.at.offset * element);
  }
  for (const char* op : {"q", "o", "o_chunk"}) EXPECT_GE(moved[op], 6) << op;
}

// The same of kernels that write pages or a swizzle: what a call changed, told by its place.
struct reached {
  std::set<int> codes, fnuz_codes;
  std::set<std::uint32_t> scales;  // UE8M0 bytes, or f32 bits
};
void collect(const test_case& c, const buffer& result, reached& to) {
  const buffer* before = c.input(result.name);
  if (before == nullptr) {
    for (const std::byte b : result.bytes) {
      if (result.type == dtype::f8e4m3fn) to.codes.insert(static_cast<int>(b));
      if (result.type == dtype::ue8m0) to.scales.insert(static_cast<std::uint32_t>(b));
    }
    return;
  }
  test_case copy = c;
  const call context = make_call(c.kernel, c.attributes, copy.inputs, copy.expected);
  const kernel_contract& contract = contract_of(c.kernel);
  const auto pages = paged_view_of(contract, context, check(contract, context, true), result.name);
  if (!pages) return;
  for (std::size_t at = 0; at < result.bytes.size(); ++at) {
    if (result.bytes[at] == before->bytes[at]) continue;
    const page_place place = locate(*pages, static_cast<std::int64_t>(at));
    ASSERT_EQ(place.in, page_place::where::record) << c.name << ": byte " << at;
    const auto byte = static_cast<std::uint32_t>(result.bytes[at]);
    if (place.region.kind == region_kind::scale) {
      const std::size_t first = at - static_cast<std::size_t>(place.byte_in_element);
      to.scales.insert(place.region.type == dtype::f32
                           ? load<std::uint32_t>(result.bytes.data() + first)
                           : byte);
    } else if (place.region.type == dtype::e2m1x2) {
      to.codes.insert(static_cast<int>(byte & 15));
      to.codes.insert(static_cast<int>(byte >> 4));
    } else if (place.region.type == dtype::f8e4m3fn) {
      to.codes.insert(static_cast<int>(byte));
    } else if (place.region.type == dtype::f8e4m3fnuz) {
      to.fnuz_codes.insert(static_cast<int>(byte));
    }
  }
}

struct reach_row {
  const char* kernel;
  const char* result;
  std::size_t codes, fnuz_codes, scales;
};
class reach : public ::testing::TestWithParam<reach_row> {};
// E4M3 has 255 codes that an encoder makes (one NaN, not two); of FNUZ's, those past +-224 lie
// behind the limit.
INSTANTIATE_TEST_SUITE_P(
    kernels, reach,
    ::testing::Values(reach_row{"mxfp4_k_norm_quant_insert", "kv_cache", 16, 0, 150},
                      reach_row{"indexer_k_norm_quant_insert", "kv_cache", 255, 253, 40},
                      reach_row{"mxfp4_fused_prologue", "index_cache", 16, 0, 130},
                      reach_row{"mxfp4_fused_prologue", "mla_cache", 255, 253, 1500},
                      reach_row{"dsa_fused_prologue", "index_cache", 255, 253, 35},
                      reach_row{"dsa_fused_prologue", "mla_cache", 255, 253, 1500},
                      reach_row{"fused_q_kv_rmsnorm_quant", "q_quant", 255, 0, 0},
                      reach_row{"fused_q_kv_rmsnorm_quant", "q_scales", 0, 0, 190}),
    [](const auto& info) {
      return std::string(info.param.kernel) + "_" + std::string(info.param.result);
    });

TEST_P(reach, every_code_and_many_scales) {
  const reach_row& wanted = GetParam();
  reached found;
  for (const case_spec& spec : cases_of(wanted.kernel, level::acceptance, 1)) {
    test_case c = spec.build();
    if (c.inputs[0].bytes.size() > std::size_t{1} << 17) continue;
    fill_expected(c, profile::nvidia);
    const buffer* result = find_buffer(c.expected, wanted.result);
    if (result != nullptr) collect(c, *result, found);
  }
  EXPECT_GE(found.codes.size(), wanted.codes);
  EXPECT_GE(found.fnuz_codes.size(), wanted.fnuz_codes);
  EXPECT_GE(found.scales.size(), wanted.scales);
}

// Each rule of a row norm shows in the cases that are flagged for it: another value of it gives
// other bytes in at least half of them; at the level smoke, which holds few, in one.
struct norm_fault {
  const char* name;
  void (*edit)(Rules&);
  bool of_deviations = false;
};
const norm_fault norm_faults[] = {
    {"neighbours first",
     [](Rules& r) {
       r.tree = [](std::int64_t padded, int bytes, int warps) {
         reduction_tree tree = tree_of(padded, bytes, warps);
         tree.lane_pairing = pairing::doubling;
         return tree;
       };
     }},
    {"squares rounded",
     [](Rules& r) {
       r.tree = [](std::int64_t padded, int bytes, int warps) {
         reduction_tree tree = tree_of(padded, bytes, warps);
         tree.squares = square_step::separate;
         return tree;
       };
     },
     true},
    {"one warp less",
     [](Rules& r) {
       r.tree = [](std::int64_t padded, int bytes, int warps) {
         return tree_of(padded, bytes, warps == 1 ? 2 : warps / 2);
       };
     }},
    {"exact root", [](Rules& r) { r.rsqrt = rules_for(profile::ieee).rsqrt; }},
};

class norms : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(kernels, norms,
                         ::testing::Values("mxfp4_k_norm_quant_insert",
                                           "indexer_k_norm_quant_insert", "mxfp4_fused_prologue",
                                           "dsa_fused_prologue", "fused_q_kv_rmsnorm_quant"));

TEST_P(norms, show_their_order_at_each_level) {
  for (const level up_to : {level::smoke, level::acceptance}) {
    for (const norm_fault& fault : norm_faults) {
      int flagged = 0;
      int different = 0;
      for (const case_spec& spec : cases_of(GetParam(), up_to, 1)) {
        if (std::count(spec.flags.begin(), spec.flags.end(), "OrderSensitive") == 0) continue;
        test_case c = spec.build();
        fill_expected(c, profile::nvidia);
        Rules rules = rules_for(profile::nvidia);
        fault.edit(rules);
        const std::vector<buffer> results =
            expected_results(contract_of(c.kernel), c.attributes, c.inputs, canary, rules);
        ++flagged;
        for (std::size_t i = 0; i < results.size(); ++i) {
          if (results[i].bytes == c.expected[i].bytes) continue;
          ++different;
          break;
        }
      }
      // Squares of bf16 are exact: an RMSNorm cannot show how they are rounded.
      if (fault.of_deviations && GetParam() == std::string("fused_q_kv_rmsnorm_quant")) continue;
      EXPECT_GE(different * 2, up_to == level::smoke ? 2 : flagged) << fault.name;
    }
  }
}

}  // namespace
}  // namespace kvcts
