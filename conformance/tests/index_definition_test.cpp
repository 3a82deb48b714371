// The index kernels against what their outputs are by definition, on every case of the acceptance
// level.
#include "fuzz/index_definition.h"

#include <map>

#include "conformance/cases/smoke.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

using integer = std::int64_t;

struct index_kernel {
  const char* name;
  index_outputs (*define)(const test_case&);
};
class index_definition : public ::testing::TestWithParam<index_kernel> {};
INSTANTIATE_TEST_SUITE_P(
    kernels, index_definition,
    ::testing::Values(index_kernel{"compute_global_topk_indices_and_lens", define_global_topk},
                      index_kernel{"combine_topk_swa_indices", define_combined},
                      index_kernel{"build_flashinfer_mixed_sparse_indices", define_mixed}),
    [](const auto& info) { return std::string(info.param.name); });

// Cases of the level whose outputs by the rules are not those of the definition.
std::vector<std::string> others_than_defined(const index_kernel& kernel, level up_to,
                                             const Rules& rules) {
  std::vector<std::string> names;
  for (const case_spec& spec : cases_of(kernel.name, up_to, 1)) {
    test_case c = spec.build();
    const std::vector<buffer> results =
        expected_results(contract_of(kernel.name), c.attributes, c.inputs, canary, rules);
    const index_outputs wanted = kernel.define(c);
    if (numbers_of(results.at(0)) != wanted.ids || numbers_of(results.at(1)) != wanted.lens) {
      names.push_back(spec.name);
    }
  }
  return names;
}

TEST_P(index_definition, is_met_by_the_reference_on_every_case) {
  for (const profile p : {profile::nvidia, profile::ieee}) {
    EXPECT_EQ(others_than_defined(GetParam(), level::acceptance, rules_for(p)),
              std::vector<std::string>{});
  }
}

// Outputs are neither all -1 nor all alike.
TEST_P(index_definition, gives_many_ids) {
  std::map<integer, integer> ids;
  for (const case_spec& spec : smoke_candidates(GetParam().name, 1)) {
    for (const integer id : GetParam().define(spec.build()).ids) ++ids[id];
  }
  EXPECT_GT(ids.size(), 100u);
  EXPECT_GT(ids[-1], 50);
}

TEST(index_definition_of, combined_rows_finds_wrong_rules) {
  const index_kernel combine = {"combine_topk_swa_indices", define_combined};
  Rules compacted = rules_for(profile::nvidia);
  compacted.compact_topk = true;
  EXPECT_FALSE(others_than_defined(combine, level::smoke, compacted).empty());
  Rules one_short = rules_for(profile::nvidia);
  one_short.topk_length = [](integer position, integer ratio, integer topk) {
    return ratio > 0 ? std::min(position / ratio, topk) : 0;
  };
  EXPECT_FALSE(others_than_defined(combine, level::smoke, one_short).empty());
}

TEST(index_definition_of, mixed_rows_finds_wrong_rules) {
  const index_kernel mixed = {"build_flashinfer_mixed_sparse_indices", define_mixed};
  Rules no_span = rules_for(profile::nvidia);
  no_span.remap_index = [](integer index, integer, integer) { return index < 0 ? -1 : index; };
  EXPECT_FALSE(others_than_defined(mixed, level::smoke, no_span).empty());
  // An engine that takes a negative slot for an id.
  Rules negative = rules_for(profile::nvidia);
  negative.remap_index = [](integer index, integer size, integer span) {
    return index / size * span + index % size;
  };
  EXPECT_FALSE(others_than_defined(mixed, level::smoke, negative).empty());
}

}  // namespace
}  // namespace kvcts
