// Caches past 2^32 bytes: the memory with holes itself, what the runner sees in it, and that every
// kernel's cases catch 32-bit offsets.
#include "vectors/sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "conformance/runner/evidence.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "reference/kernels/kernels.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using testing_tools::case_named;

constexpr std::size_t gib = std::size_t{1} << 30;
constexpr std::size_t page = sparse_memory::page;

std::string text_of(const std::vector<byte_range>& ranges) {
  std::string text;
  for (const byte_range& r : ranges) text += fmt::format("[{}+{}]", r.first, r.bytes);
  return text;
}

TEST(sparse_memory, knows_what_is_written) {
  const sparse_memory m(5 * gib + 100);
  EXPECT_EQ(text_of(m.written()), "");
  m.data()[0] = std::byte{1};
  m.data()[3 * gib + 5000] = std::byte{2};
  m.data()[3 * gib + 3 * page] = std::byte{2};
  m.data()[5 * gib + 99] = std::byte{3};
  EXPECT_EQ(m.data()[4 * gib], std::byte{0});  // reading is not writing
  // Guards are not content.
  m.data()[-1] = std::byte{0xCC};
  m.data()[5 * gib + 100] = std::byte{0xCC};
  EXPECT_EQ(text_of(m.written()), fmt::format("[0+4096][{}+4096][{}+4096][{}+100]", 3 * gib + page,
                                              3 * gib + 3 * page, 5 * gib));
  m.data()[3 * gib + 2 * page] = std::byte{1};
  EXPECT_EQ(text_of(m.written()),
            fmt::format("[0+4096][{}+12288][{}+100]", 3 * gib + page, 5 * gib));
}

TEST(sparse_memory, is_a_value) {
  sparse_memory one(5 * gib);
  one.data()[4 * gib + 7] = std::byte{1};
  const sparse_memory two = one;
  one.data()[4 * gib + 7] = std::byte{2};
  EXPECT_EQ(two.data()[4 * gib + 7], std::byte{1});
  sparse_memory three;
  EXPECT_TRUE(three.empty());
  three = std::move(one);
  EXPECT_EQ(three.data()[4 * gib + 7], std::byte{2});
  three = two;
  EXPECT_EQ(three.data()[4 * gib + 7], std::byte{1});
  const sparse_memory nothing = sparse_memory();
  EXPECT_TRUE(sparse_memory(nothing).empty());
}

TEST(sparse_memory, ranges_unite) {
  EXPECT_EQ(text_of(united({{0, 4}, {8, 4}, {20, 4}}, {{2, 6}, {13, 1}, {20, 2}})),
            "[0+12][13+1][20+4]");
  EXPECT_EQ(text_of(united({}, {})), "");
}

TEST(sparse_buffer, has_a_digest_of_its_written_pages) {
  test_case c;
  c.inputs.resize(1);
  buffer& b = c.inputs[0];
  b.at = dense({static_cast<std::int64_t>(5 * gib)});
  b.sparse = sparse_memory(5 * gib);
  const std::string empty = digest_of(c);
  b.sparse.data()[4 * gib + 9] = std::byte{7};
  const std::string one = digest_of(c);
  EXPECT_NE(one, empty);
  b.sparse.data()[4 * gib + 9] = std::byte{0};
  EXPECT_EQ(digest_of(c), empty);
  b.sparse.data()[9] = std::byte{7};  // the same byte elsewhere
  EXPECT_NE(digest_of(c), one);
}

TEST(sparse_buffer, goes_into_no_file) {
  const testing_tools::scratch folder;
  suite s;
  s.cases.push_back(case_named("quantize_and_insert_k_cache", "past4g_stride1g_r584"));
  try {
    write_vectors(folder.path("a.h5"), s);
    FAIL() << "written";
  } catch (const input_error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("cannot hold quantize_and_insert_k_cache/past4g_stride1g_r584"),
              std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(folder.empty());

  const auto made = testing_tools::run_program(
      "vectors generate --kernels mxfp4_k_norm_quant_insert --level acceptance -o " +
      folder.path("b.h5"));
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.out.find("left out: 5 cases whose caches past 2 GiB are in memory only"),
            std::string::npos)
      << made.out;
}

case_result run_tampered(const std::string& kernel, const std::string& name,
                         std::function<void(const call&)> more) {
  testing_tools::tampering subject(std::move(more));
  return run_case(case_named(kernel, name), subject, profile::nvidia);
}

TEST(sparse_run, sees_a_byte_in_a_hole) {
  const case_result result = run_tampered(
      "quantize_and_insert_k_cache", "past4g_stride1g_r584",
      [](const call& c) { c.tensor("k_cache").storage[3 * gib + gib / 2] = std::byte{1}; });
  EXPECT_EQ(result.what, outcome::failed);
  EXPECT_EQ(result.bytes_different, 1u);
  ASSERT_EQ(result.places.size(), 1u);
  // Pages are 2^30 + 80 bytes apart.
  EXPECT_EQ(result.places[0].place,
            fmt::format("page 3, byte {} (between pages: must not change)", gib / 2 - 3 * 80));
}

TEST(sparse_run, sees_a_page_that_became_zero) {
  const case_result result =
      run_tampered("quantize_and_insert_k_cache", "past4g_pages_r528", [](const call& c) {
        const tensor_view& cache = c.tensor("k_cache");
        const std::ptrdiff_t last = cache.element(cache.dim(0) - 1, 0, 0) - cache.storage;
        const auto next = static_cast<std::size_t>(last) / page + 1;
        std::fill_n(cache.storage + next * page, page, std::byte{0});
      });
  EXPECT_EQ(result.what, outcome::failed);
  EXPECT_GT(result.bytes_different, page - 64);
}

TEST(sparse_run, sees_a_write_outside_of_the_storage) {
  const auto write_at = [](std::ptrdiff_t from_end) {
    return run_tampered(
        "quantize_and_insert_k_cache", "past4g_start_r584", [from_end](const call& c) {
          const tensor_view& cache = c.tensor("k_cache");
          const auto size = static_cast<std::ptrdiff_t>(cache.storage_bytes);
          *(cache.storage + (from_end < 0 ? from_end : size + from_end)) = std::byte{0};
        });
  };
  const case_result before = write_at(-2), behind = write_at(3);
  ASSERT_EQ(before.places.size(), 1u);
  EXPECT_EQ(before.places[0].place, "2 bytes before the buffer (must not change)");
  ASSERT_EQ(behind.places.size(), 1u);
  EXPECT_EQ(behind.places[0].place, "guard byte 3 after the buffer (must not change)");
}

TEST(sparse_run, sees_a_changed_input) {
  const case_result result = run_tampered(
      "dequantize_and_gather_k_cache", "past4g_pages_r584",
      [](const call& c) { c.tensor("k_cache").storage[4 * gib - 1000000] = std::byte{1}; });
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].argument, "k_cache");
  EXPECT_NE(result.places[0].place.find("an input: must not change"), std::string::npos);
}

TEST(sparse_run, has_the_digests_that_evidence_recomputes) {
  run_options options;
  const auto plan = plan_built_in(kernel_filter("mxfp4_k_norm_quant_insert"), level::acceptance, 1,
                                  profile::nvidia);
  const auto reference = make_candidate("reference", 1);
  const evidence e = evidence_of(run_suite(plan, *reference, options), plan);
  const auto no_file = [](const std::string&) { return std::nullopt; };
  EXPECT_NE(check_evidence(e, 0, no_file).state, evidence_state::wrong);
  evidence wrong = e;
  for (evidence_case& c : wrong.cases) {
    if (c.name == "past4g_pages_d128") c.outputs["kv_cache"][0] ^= 1;
  }
  const evidence_check found = check_evidence(wrong, 0, no_file);
  EXPECT_EQ(found.state, evidence_state::wrong);
  EXPECT_NE(found.message.find("past4g_pages_d128"), std::string::npos) << found.message;
}

// Offsets of 32 bits, as a rule.
struct narrow {
  const char* name;
  const char* kernel;
  const char* flag;  // of the cases that must catch it
  void (*edit)(Rules&);
};
void unsigned_offsets(Rules& rules) {
  rules.page_offset = [](std::int64_t at, std::int64_t stride, std::int64_t, std::int64_t) {
    return std::int64_t{static_cast<std::uint32_t>(at * stride)};
  };
}
void signed_offsets(Rules& rules) {
  rules.page_offset = [](std::int64_t at, std::int64_t stride, std::int64_t, std::int64_t) {
    return std::int64_t{static_cast<std::int32_t>(at * stride)};
  };
}
// Ring pages of 8 rows of 4096 bytes: 2^17 of them are 2^32 bytes.
void unsigned_ring_pages(Rules& rules) {
  rules.page_of = [](std::int64_t slot, std::int64_t rows, std::int64_t) {
    return slot / rows & 0x1FFFF;
  };
}

std::vector<narrow> all_narrow() {
  std::vector<narrow> all;
  for (const char* kernel :
       {"quantize_and_insert_k_cache", "dequantize_and_gather_k_cache", "mxfp4_k_norm_quant_insert",
        "indexer_k_norm_quant_insert", "mxfp4_fused_prologue", "dsa_fused_prologue",
        "rope_quant_insert", "indexer_k_norm_rope_store"}) {
    all.push_back({"unsigned", kernel, "Past4GiB", unsigned_offsets});
    all.push_back({"signed", kernel, "Past2GiB", signed_offsets});
  }
  return all;
}

class narrow_offsets : public ::testing::TestWithParam<narrow> {};
INSTANTIATE_TEST_SUITE_P(all, narrow_offsets, ::testing::ValuesIn(all_narrow()),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.name, info.param.kernel);
                         });

TEST_P(narrow_offsets, are_caught_by_every_form) {
  const narrow& n = GetParam();
  const auto subject = candidate_of_rules(n.name, [&](profile p) {
    Rules rules = rules_for(p);
    n.edit(rules);
    return rules;
  });
  int cases = 0;
  for (const case_spec& spec : cases_of(n.kernel, level::acceptance, 1)) {
    const auto flagged = [&](std::string_view flag) {
      return std::find(spec.flags.begin(), spec.flags.end(), flag) != spec.flags.end();
    };
    // A storage that begins past 2^32 has small page offsets.
    if (!flagged(n.flag) || flagged("CacheOffset")) continue;
    ++cases;
    EXPECT_EQ(run_case(spec.build(), *subject, profile::nvidia).what, outcome::failed) << spec.name;
  }
  EXPECT_GE(cases, 3);
}

TEST(narrow_offsets, of_the_state_ring_are_caught) {
  const auto subject = candidate_of_rules("ring", [](profile p) {
    Rules rules = rules_for(p);
    unsigned_ring_pages(rules);
    return rules;
  });
  EXPECT_EQ(run_case(case_named("fused_save_compress_norm", "past4g_pages_ring8"), *subject,
                     profile::nvidia)
                .what,
            outcome::failed);
}

}  // namespace
}  // namespace kvcts
