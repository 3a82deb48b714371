// The order of a LayerNorm's sums, for each width and number of warps: kernels have code of their
// own for some of them, and a wrong order there must show in acceptance cases of just that tree.
#include <map>
#include <set>
#include <utility>

#include "conformance/cases/draw.h"
#include "conformance/faults/faults.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "reference/formats/bf16.h"

namespace kvcts {
namespace {

constexpr const char* order_faults[] = {
    "lanes_neighbours_first", "last_lanes_swapped", "warps_neighbours_first",
    "mirrored_half_missing",  "squares_rounded",    "other_warps",
    "one_element_a_lane",     "sum_in_order",       "squares_in_order"};

// Whether a fault changes the sums of any row at all.
bool can_show(const fault& f, std::int64_t dims, int warps) {
  const Rules right = rules_for(profile::nvidia);
  const Rules wrong = rules_with(f, profile::nvidia);
  const reduction_tree tree = right.tree(dims, 2, warps);
  const reduction_tree other = wrong.tree(dims, 2, warps);
  draw from(1);
  std::vector<float> x(static_cast<std::size_t>(dims));
  for (int round = 0; round < 200; ++round) {
    for (float& value : x) {
      value = decode_bf16(bf16_normal(from.one_in(2), from.between(-4, 4), from.below(128))) +
              0x1p-12F * static_cast<float>(from.below(100));
    }
    if (right.sum(tree, x.data(), dims) != wrong.sum(other, x.data(), dims)) return true;
    for (const std::int64_t element : {std::int64_t{0}, dims - 1}) {
      if (right.sum_of_squares(tree, x.data(), dims, element) !=
          wrong.sum_of_squares(other, x.data(), dims, element)) {
        return true;
      }
    }
  }
  return false;
}

struct layer_norm_kernel {
  const char *name, *rows, *cache;
  int warps;  // where num_warps is absent
};
const layer_norm_kernel layer_norm_kernels[] = {
    {"mxfp4_k_norm_quant_insert", "k", "kv_cache", 1},
    {"indexer_k_norm_quant_insert", "k", "kv_cache", 1},
    {"mxfp4_fused_prologue", "index_k", "index_cache", 4},
    {"dsa_fused_prologue", "index_k", "index_cache", 4}};

void PrintTo(const layer_norm_kernel& k, std::ostream* to) { *to << k.name; }

class reduction_order : public ::testing::TestWithParam<layer_norm_kernel> {};
INSTANTIATE_TEST_SUITE_P(kernels, reduction_order, ::testing::ValuesIn(layer_norm_kernels),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(reduction_order, shows_at_each_width_and_number_of_warps) {
  const layer_norm_kernel& kernel = GetParam();
  const kernel_contract& contract = contract_of(kernel.name);
  const Rules right = rules_for(profile::nvidia);
  std::map<std::pair<std::int64_t, int>, std::set<std::string>> shown;
  for (const case_spec& spec : cases_of(kernel.name, level::acceptance, 1)) {
    if (std::count(spec.flags.begin(), spec.flags.end(), "OrderSensitive") == 0) continue;
    test_case c = spec.build();
    if (find_buffer(c.inputs, kernel.cache) == nullptr) continue;
    const auto given = c.attributes.find("num_warps");
    const int warps = given == c.attributes.end()
                          ? kernel.warps
                          : static_cast<int>(std::get<std::int64_t>(given->second));
    auto& found = shown[{find_buffer(c.inputs, kernel.rows)->at.shape[1], warps}];
    const auto cache_by = [&](const Rules& rules) {
      const auto made = expected_results(contract, c.attributes, c.inputs, canary, rules);
      return find_buffer(made, kernel.cache)->bytes;
    };
    const std::vector<std::byte> expected = cache_by(right);
    for (const char* name : order_faults) {
      if (found.count(name) != 0) continue;
      if (cache_by(rules_with(*find_fault(name), profile::nvidia)) != expected) found.insert(name);
    }
  }
  for (const std::int64_t dims : {32, 64, 128, 256, 512, 1024}) {
    for (const int warps : {1, 2, 4}) {
      for (const char* name : order_faults) {
        if (!can_show(*find_fault(name), dims, warps)) continue;
        EXPECT_EQ(shown[std::pair(dims, warps)].count(name), 1u)
            << name << ", D = " << dims << ", " << warps << " warps";
      }
    }
  }
}

// What it takes for granted: where these two can show.
TEST(reduction_orders, have_a_mirrored_half_at_32_dims_and_pairs_of_warps_at_four) {
  EXPECT_TRUE(can_show(*find_fault("mirrored_half_missing"), 32, 1));
  EXPECT_TRUE(can_show(*find_fault("mirrored_half_missing"), 32, 4));
  EXPECT_FALSE(can_show(*find_fault("mirrored_half_missing"), 64, 4));
  EXPECT_TRUE(can_show(*find_fault("warps_neighbours_first"), 128, 4));
  EXPECT_FALSE(can_show(*find_fault("warps_neighbours_first"), 128, 2));
  EXPECT_TRUE(can_show(*find_fault("last_lanes_swapped"), 128, 4));
}

}  // namespace
}  // namespace kvcts
