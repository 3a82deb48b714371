// The sweeps in a size for every day: the same checks as `kvcts exhaustive`, on inputs spread over
// each sweep. Every sweep is seen to fail where its rule is wrong.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "conformance/exhaustive/campaign.h"
#include "conformance/faults/faults.h"
#include "conformance/runner/costs.h"
#include "conformance/tests/tools.h"
#include "fuzz/shapes.h"
#include "reference/contract/contract.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/ue8m0.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/log2.h"

namespace kvcts {
namespace {

using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

const std::string captured = KVCTS_SOURCE_DIR "/vectors/captured";

// Of a large sweep every 4096th input and those beside it: what has 11 mantissa bits or fewer, as
// ties and powers of two have.
sweep_finding sample(const sweep& s) {
  constexpr std::uint64_t step = 4096;
  const bool large = s.inputs >= std::uint64_t{1} << 32;
  if (!large) {
    const std::uint64_t stride = s.inputs < 300 ? 1 : s.inputs < 20000 ? 13 : 255;
    return s.check({0, (s.inputs + stride - 1) / stride, stride});
  }
  sweep_finding found;
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, step - 1}) {
    found.add(s.check({first, s.inputs / step, step}));
  }
  return found;
}

void expect_all_hold(const std::vector<sweep>& sweeps) {
  std::set<std::string> names;
  for (const sweep& s : sweeps) {
    EXPECT_TRUE(names.insert(s.name).second) << s.name;
    const sweep_finding found = sample(s);
    EXPECT_GT(found.inputs, 0U) << s.name;
    EXPECT_EQ(found.mismatches, 0U) << s.name << ": " << found.first;
  }
}

// The sweep of this name fails.
void expect_fails(const std::vector<sweep>& sweeps, const std::string& name) {
  const auto named =
      std::find_if(sweeps.begin(), sweeps.end(), [&](const sweep& s) { return s.name == name; });
  ASSERT_NE(named, sweeps.end()) << name;
  const sweep_finding found = sample(*named);
  EXPECT_GT(found.mismatches, 0U) << name;
  EXPECT_NE(found.first, "") << name;
}

TEST(sweeps, formats_hold) {
  expect_all_hold(format_sweeps(format_functions(rules_for(profile::nvidia))));
}
TEST(sweeps, instructions_hold) { expect_all_hold(instruction_sweeps(captured)); }
std::vector<sweep> sweeps_of_kernels(candidate& subject, profile p) {
  std::vector<sweep> all = block_sweeps(subject, p);
  for (sweep& s : shape_sweeps(subject, p)) all.push_back(std::move(s));
  return all;
}
TEST(sweeps, kernels_hold) {
  for (const profile p : {profile::nvidia, profile::ieee}) {
    const auto subject = make_candidate("cpu", 1);
    const std::vector<sweep> sweeps = sweeps_of_kernels(*subject, p);
    EXPECT_EQ(sweeps.size(), 6 + contracts().size());
    expect_all_hold(sweeps);
  }
}

// A bit more wherever a tie would be rounded down.
float past_tie(float x, std::uint32_t below) {
  const std::uint32_t bits = bits_of(x);
  const bool finite = (bits & 0x7FFFFFFF) < 0x7F800000;
  return float_of(finite && (bits & below) == 0 ? bits + 1 : bits);
}
std::uint8_t e2m1_ties_away(float x) { return encode_e2m1(past_tie(x, 0x1FFFFF)); }
std::uint8_t e4m3_ties_away(float x, fp8_format format) {
  return encode_e4m3(past_tie(x, 0x7FFFF), format);
}
std::uint16_t bf16_truncated(float x) {
  return std::isnan(x) ? 0x7FFF : static_cast<std::uint16_t>(bits_of(x) >> 16);
}
std::uint8_t ue8m0_floor(float x) {
  const bool number = x > 0 && std::isfinite(x);
  return number ? static_cast<std::uint8_t>(bits_of(x) >> 23) : encode_ue8m0(x);
}
float e2m1_no_sign(std::uint8_t code) { return decode_e2m1(code & 7); }
float e4m3_other_table(std::uint8_t byte, fp8_format format) {
  return decode_e4m3(byte, format == fp8_format::e4m3fn ? fp8_format::e4m3fnuz : format);
}
float e4m3_ocp(std::uint8_t byte, fp8_format) { return decode_e4m3(byte, fp8_format::e4m3fn); }
float bf16_canonical(std::uint16_t bits) {
  const float x = decode_bf16(bits);
  return std::isnan(x) ? float_of(canonical_nan_bits) : x;
}
float ue8m0_zero(std::uint8_t byte) { return byte == 0 ? 0.0F : decode_ue8m0(byte); }
float no_window(float x) { return ceil_log2_exact(x); }
float with_window(float x) { return ceil_log2(x); }
std::uint8_t field_only(float n) {
  return std::isnan(n) ? 254 : n <= 0 ? 0 : static_cast<std::uint8_t>(bits_of(n) >> 23);
}

TEST(sweeps, a_wrong_format_shows) {
  const auto with = [](auto edit) {
    format_functions functions(rules_for(profile::nvidia));
    edit(functions);
    return format_sweeps(functions);
  };
  using f = format_functions&;
  expect_fails(with([](f x) { x.encode_e2m1 = e2m1_ties_away; }), "format.e2m1.encode");
  for (const char* name : {"format.e4m3fn.encode", "format.e4m3fnuz.encode"}) {
    expect_fails(with([](f x) { x.encode_e4m3 = e4m3_ties_away; }), name);
  }
  expect_fails(with([](f x) { x.encode_bf16 = bf16_truncated; }), "format.bf16.encode");
#ifdef KVCTS_CUDA_CONVERSIONS
  expect_fails(with([](f x) { x.encode_e2m1 = e2m1_ties_away; }), "format.e2m1.toolkit");
  expect_fails(with([](f x) { x.encode_e4m3 = e4m3_ties_away; }), "format.e4m3fn.toolkit");
  expect_fails(with([](f x) { x.encode_bf16 = bf16_truncated; }), "format.bf16.toolkit");
#endif
  expect_fails(with([](f x) { x.encode_ue8m0 = ue8m0_floor; }), "format.ue8m0.encode");
  expect_fails(with([](f x) { x.decode_e2m1 = e2m1_no_sign; }), "format.e2m1.decode");
  expect_fails(with([](f x) { x.decode_e4m3 = e4m3_other_table; }), "format.e4m3fn.decode");
  expect_fails(with([](f x) { x.decode_e4m3 = e4m3_ocp; }), "format.e4m3fnuz.decode");
  expect_fails(with([](f x) { x.decode_bf16 = bf16_canonical; }), "format.bf16.decode");
  expect_fails(with([](f x) { x.decode_ue8m0 = ue8m0_zero; }), "format.ue8m0.decode");
  expect_fails(with([](f x) { x.ceil_log2 = no_window; }), "scale.ceil_log2");
  expect_fails(with([](f x) { x.ceil_log2_exact = with_window; }), "scale.ceil_log2_exact");
  expect_fails(with([](f x) { x.integer_scale = field_only; }), "scale.integer");
}

// One coefficient by one unit.
template <std::size_t N>
std::vector<mufu_segment> one_off(const mufu_segment (&table)[N], std::size_t segment) {
  std::vector<mufu_segment> changed(table, table + N);
  changed[segment].c0 += 1;
  return changed;
}

TEST(sweeps, a_wrong_coefficient_shows) {
  const std::vector<mufu_segment> rcp = one_off(rcp_segments, 77);
  const std::vector<mufu_segment> rsqrt = one_off(rsqrt_segments, 100);
  const std::vector<mufu_segment> ex2 = one_off(ex2_segments, 13);
  instruction_tables tables;
  tables.rcp = rcp.data();
  tables.rsqrt = rsqrt.data();
  tables.ex2 = ex2.data();
  for (const sweep& s : instruction_sweeps(captured, tables)) {
    EXPECT_GT(sample(s).mismatches, 0U) << s.name;
  }
}

TEST(sweeps, missing_captured_results_are_told) {
  for (const sweep& s : instruction_sweeps("/no/such/folder")) {
    if (s.name.find("ex2") != std::string::npos) continue;  // its checksums are in the program
    try {
      s.check({0, 1, 1});
      FAIL() << s.name;
    } catch (const input_error& error) {
      EXPECT_NE(std::string(error.what()).find("--source"), std::string::npos) << error.what();
    }
  }
}

std::int64_t dense_pages(std::int64_t page, std::int64_t, std::int64_t block_size,
                         std::int64_t bytes) {
  return page * block_size * bytes;
}
std::int64_t as_it_is(std::int64_t head, std::int64_t dim, std::int64_t, std::int64_t dims,
                      std::int64_t) {
  return head * dims + dim;
}

TEST(sweeps, a_wrong_kernel_shows) {
  const auto failing = [](void (*edit)(Rules&)) {
    const auto subject = candidate_of_rules("wrong", [edit](profile p) {
      Rules rules = rules_for(p);
      edit(rules);
      return rules;
    });
    std::set<std::string> names;
    for (const sweep& s : sweeps_of_kernels(*subject, profile::nvidia)) {
      if (sample(s).mismatches != 0) names.insert(s.name);
    }
    return names;
  };
  const auto has = [](const std::set<std::string>& names, const std::vector<std::string>& wanted) {
    for (const std::string& name : wanted) EXPECT_EQ(names.count(name), 1U) << name;
  };
  has(failing([](Rules& r) { r.encode_e2m1 = e2m1_ties_away; }), {"block.mxfp4", "block.nvfp4"});
  has(failing([](Rules& r) { r.encode_e4m3 = e4m3_ties_away; }),
      {"block.mxfp8.ocp", "block.mxfp8.fnuz", "block.v4.ocp", "block.v4.fnuz"});
  has(failing([](Rules& r) { r.zero_padded_heads = false; }), {"shape.mxfp4_q_quant"});
  has(failing([](Rules& r) { r.page_offset = dense_pages; }),
      {"shape.quantize_and_insert_k_cache"});
  has(failing([](Rules& r) { r.topk_fill = 0; }), {"shape.mxfp4_k_norm_quant_insert"});
  has(failing([](Rules& r) { r.interleaved_row = as_it_is; }), {"shape.fused_layout"});
}

// Every kernel's shapes show a fault that puts bytes in another place, or leaves some out.
TEST(sweeps, a_wrong_shape_shows) {
  const std::map<std::string, std::string> faults = {
      {"mxfp4_q_quant", "padded_heads_left"},
      {"mxfp4_k_norm_quant_insert", "topk_fill_short"},
      {"mxfp4_fused_prologue", "rows_past_mapping"},
      {"indexer_k_norm_quant_insert", "dense_pages"},
      {"dsa_fused_prologue", "scales_interleaved"},
      {"quantize_and_insert_k_cache", "slots_below_minus_one"},
      {"dequantize_and_gather_k_cache", "dense_pages"},
      {"compute_global_topk_indices_and_lens", "padding_tokens_counted"},
      {"combine_topk_swa_indices", "topk_compacted"},
      {"build_flashinfer_mixed_sparse_indices", "padding_tokens_counted"},
      {"fused_indexer_q_rope_quant", "rope_halves"},
      {"fused_inv_rope_fp8_quant", "padding_rows_left"},
      {"indexer_k_norm_rope_store", "group_at_every_token"},
      {"fused_save_compress_norm", "pool_swapped"},
      {"rope_quant_insert", "dense_pages"},
      {"fused_layout", "rows_transposed"},
      {"fused_q_kv_rmsnorm_quant", "swizzle_missing"}};
  ASSERT_EQ(faults.size(), contracts().size());
  for (const auto& [kernel, name] : faults) {
    const fault* wrong = find_fault(name);
    ASSERT_NE(wrong, nullptr) << name;
    const auto subject =
        candidate_of_rules("faulty", [&](profile p) { return rules_with(*wrong, p); });
    const std::vector<sweep> sweeps = shape_sweeps(*subject, profile::nvidia);
    expect_fails(sweeps, "shape." + kernel);
  }
}

// Each number is another combination, of which none is left out.
TEST(sweeps, shapes_are_every_combination) {
  for (const shape_bound& bound : shape_bounds()) {
    std::set<std::string> seen;
    for (std::uint64_t number = 0; number < bound.shapes(); ++number) {
      seen.insert(words_of(bound, shape_of(bound, number)));
    }
    EXPECT_EQ(seen.size(), bound.shapes()) << bound.plan.kernel;
    EXPECT_GT(bound.shapes(), 300U) << bound.plan.kernel;
  }
  const shape_bound& queries = shape_bounds().front();
  EXPECT_EQ(queries.shapes(), 9U * 8 * 4 * 2 * 2);
  EXPECT_EQ(words_of(queries, shape_of(queries, 9 * 8 + 9 * 2 + 5)),
            "5 tokens, 3 heads, more_heads 1, gap_index_q 0, type_index_weights 0");
}

// --- Campaigns.

std::vector<sweep> all_sweeps() {
  static const auto subject = make_candidate("cpu", 1);
  std::vector<sweep> all = format_sweeps(format_functions(rules_for(profile::nvidia)));
  for (sweep& s : instruction_sweeps(captured)) all.push_back(std::move(s));
  for (sweep& s : sweeps_of_kernels(*subject, profile::nvidia)) all.push_back(std::move(s));
  return all;
}

std::uint64_t cost_of_piece(const sweep& s, std::uint64_t piece) {
  return cost_of_inputs(s.name, std::min(s.piece, s.inputs - piece * s.piece));
}

TEST(campaign, shards_take_equally_long_by_measured_cost) {
  const std::vector<sweep> sweeps = all_sweeps();
  std::uint64_t all = 0, dearest = 0;
  std::size_t pieces = 0;
  for (const sweep& s : sweeps) {
    for (std::uint64_t piece = 0; piece < s.pieces(); ++piece, ++pieces) {
      all += cost_of_piece(s, piece);
      dearest = std::max(dearest, cost_of_piece(s, piece));
    }
  }
  for (const int count : {1, 2, 3, 8, 17, 64, 300, 700}) {
    std::set<std::pair<std::size_t, std::uint64_t>> seen;
    std::uint64_t most = 0;
    for (int index = 1; index <= count; ++index) {
      std::uint64_t load = 0;
      for (const sweep_piece& p : pieces_of(sweeps, {index, count})) {
        EXPECT_TRUE(seen.insert({p.sweep, p.piece}).second);
        load += cost_of_piece(sweeps[p.sweep], p.piece);
      }
      most = std::max(most, load);
    }
    EXPECT_EQ(seen.size(), pieces) << count;
    const std::uint64_t least = std::max(all / static_cast<std::uint64_t>(count), dearest);
    EXPECT_LE(static_cast<double>(most), 1.03 * static_cast<double>(least)) << count << " shards";
  }
}

// A name of the table that is no sweep any more, or a sweep that it lacks, is a stale table.
TEST(campaign, costs_name_every_sweep) {
  std::set<std::string> named;
  std::ifstream table(KVCTS_SOURCE_DIR "/conformance/runner/sweep_costs.def");
  for (std::string line; std::getline(table, line);) {
    if (line.rfind("SWEEP(\"", 0) == 0) named.insert(line.substr(7, line.find('"', 7) - 7));
  }
  for (const sweep& s : all_sweeps()) EXPECT_EQ(named.erase(s.name), 1U) << s.name;
  for (const std::string& name : named) {
    // Only builds that found the toolkit's headers have these.
    EXPECT_NE(name.find(".toolkit"), std::string::npos) << name << ": run costs.py";
  }
  EXPECT_GT(cost_of_inputs("instruction.div.full", 1000),
            5 * cost_of_inputs("format.e2m1.encode", 1000));
}

// 100 inputs in pieces of 7, of which 40 and 41 are wrong.
sweep small_sweep(std::atomic<int>* calls = nullptr) {
  sweep made;
  made.name = "small";
  made.inputs = 100;
  made.piece = 7;
  made.check = [calls](const sweep_range& range) {
    if (calls != nullptr) ++*calls;
    return compare_range(
        range, [](std::uint64_t i) { return i == 40 || i == 41 ? 1U : 0U; },
        [](std::uint64_t) { return 0U; }, mismatch_text);
  };
  return made;
}

TEST(campaign, counts_every_input_once_in_whatever_shards) {
  for (const int count : {1, 2, 3, 20}) {
    std::uint64_t inputs = 0, mismatches = 0;
    for (int index = 1; index <= count; ++index) {
      sweep_checkpoint none("", "");
      campaign_options options;
      options.threads = 2;
      options.part = {index, count};
      const std::vector<sweep_result> found = run_campaign({small_sweep()}, none, options);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_EQ(found[0].inputs_in_all, 100U);
      inputs += found[0].inputs;
      mismatches += found[0].mismatches;
      if (found[0].mismatches == 0) continue;
      EXPECT_EQ(found[0].first_mismatch, "0x28 -> 0x1, must be 0x0");
    }
    EXPECT_EQ(inputs, 100U) << count;
    EXPECT_EQ(mismatches, 2U) << count;
  }
}

TEST(campaign, goes_on_from_a_checkpoint) {
  const scratch folder;
  const std::string path = folder.path("checkpoint");
  std::atomic<int> calls{0};
  const auto run = [&](const std::string& work) {
    sweep_checkpoint checkpoint(path, work);
    campaign_options options;
    options.threads = 2;
    return run_campaign({small_sweep(&calls)}, checkpoint, options);
  };
  run("w");
  EXPECT_EQ(calls, 15);
  // The last line is cut short, as a kill leaves it.
  std::string text;
  {
    std::ifstream in(path);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::ofstream(path) << text.substr(0, text.size() - 5);
  const std::vector<sweep_result> again = run("w");
  EXPECT_EQ(calls, 16);
  EXPECT_EQ(again[0].inputs, 100U);
  EXPECT_EQ(again[0].mismatches, 2U);
  EXPECT_EQ(again[0].first_mismatch, "0x28 -> 0x1, must be 0x0");
  EXPECT_THROW(run("another program"), input_error);
  sweep_checkpoint held(path, "w");
  EXPECT_THROW(run("w"), input_error);  // two at once would count twice
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(exhaustive_command, goes_on_after_a_kill) {
  const scratch folder;
  const std::string path = folder.path("checkpoint");
  const std::string sweeps = "shape.mxfp4_q_quant,shape.fused_*,format.*.decode";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execl(KVCTS_PROGRAM, KVCTS_PROGRAM, "exhaustive", "--threads", "1", "--sweeps", sweeps.c_str(),
          "--checkpoint", path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  for (int tries = 0; tries < 6000 && lines_of(path).size() < 8; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::size_t before = lines_of(path).size();
  ASSERT_GE(before, 8U);

  const program_result rest =
      run_program("exhaustive --threads 2 --sweeps '" + sweeps + "' --checkpoint " + path);
  EXPECT_EQ(rest.status, 0) << rest.out << rest.err;
  EXPECT_NE(rest.out.find("pieces are finished in"), std::string::npos) << rest.out;
  EXPECT_NE(rest.out.find("conforms: 11 sweeps, 76,304 inputs, 0 mismatches"), std::string::npos)
      << rest.out;
  // Every piece once.
  std::map<std::string, int> pieces;
  for (const std::string& line : lines_of(path)) {
    ++pieces[line.substr(0, line.find(' ', line.find(' ') + 1))];
  }
  EXPECT_GT(pieces.size(), before);
  for (const auto& [piece, times] : pieces) EXPECT_EQ(times, 1) << piece;
}

TEST(exhaustive_command, plans_and_refuses) {
  const scratch folder;
  const program_result plan =
      run_program("exhaustive --plan --sweeps '*.decode' --checkpoint c", folder.path(""));
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_NE(plan.out.find("format.bf16.decode"), std::string::npos) << plan.out;
  EXPECT_EQ(plan.out.find("instruction."), std::string::npos) << plan.out;
  EXPECT_TRUE(folder.empty());
  for (const auto& [arguments, words] : std::map<std::string, std::string>{
           {"--sweeps nope", "is named 'nope'"},
           {"--shard 3/2", "3/2"},
           {"--profile nope", "unknown profile 'nope'"},
           {"--sweeps '*.rcp*' --source /nowhere", "--source"},
           {"--sweeps '*.decode' --checkpoint /nowhere/c", "cannot be written"}}) {
    const program_result r = run_program("exhaustive " + arguments, folder.path(""));
    EXPECT_EQ(r.status, 2) << arguments << r.out;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

}  // namespace
}  // namespace kvcts
