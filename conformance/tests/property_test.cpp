// What holds between calls and between kernels, by the reference and by the cpu candidate where it
// has the kernels.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "conformance/cases/build.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "fuzz/record_decoder.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

using testing_tools::input_of;

const std::set<std::string, std::less<>> caches = {"kv_cache", "k_cache", "mla_cache",
                                                   "index_cache"};
const std::set<std::string, std::less<>> mappings = {"slot_mapping", "kv_slot_mapping",
                                                     "mla_slot_mapping", "index_slot_mapping"};
// Other arguments with a row a token.
const std::set<std::string, std::less<>> rows = {
    "k", "q_c", "kv_c", "k_pe", "index_k", "k_pre", "latent", "positions", "topk_indices_buffer"};

class properties : public ::testing::TestWithParam<const char*> {
 protected:
  properties() : subject_(make_candidate(GetParam(), 3)) {}

  bool has(std::string_view kernel) const { return subject_->supports(kernel); }

  std::vector<buffer> run(test_case c) {
    const kernel_contract& contract = contract_of(c.kernel);
    std::vector<buffer> results = initial_results(contract, c.attributes, c.inputs, canary);
    const call made = make_call(c.kernel, c.attributes, c.inputs, results);
    check(contract, made, true);
    subject_->run(made, profile::nvidia);
    return results;
  }

  // The caches after a call.
  std::vector<buffer> caches_after(test_case c) {
    std::vector<buffer> results = run(std::move(c));
    results.erase(std::remove_if(results.begin(), results.end(),
                                 [](const buffer& b) { return caches.count(b.name) == 0; }),
                  results.end());
    return results;
  }

 private:
  std::unique_ptr<candidate> subject_;
};
INSTANTIATE_TEST_SUITE_P(of, properties, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

std::string digests(const std::vector<buffer>& buffers) {
  std::string text;
  for (const buffer& b : buffers) {
    text += b.name + " " + content_digest(b.data(), b.size(), b.holes()) + "\n";
  }
  return text;
}

// --- A batch in parts and in another order.

std::int64_t tokens_of(const test_case& c) {
  std::int64_t most = 0, mapped = 0;
  for (const buffer& b : c.inputs) {
    if (rows.count(b.name) != 0) most = std::max(most, b.at.shape[0]);
    if (mappings.count(b.name) != 0) mapped = std::max(mapped, b.at.shape[0]);
  }
  for (const buffer& b : c.inputs) {
    if (rows.count(b.name) != 0) most = std::min(most, b.at.shape[0]);
  }
  // In a prologue the rows count, elsewhere the slots, and num_tokens where it is given.
  if (c.input("q_c") != nullptr) return most;
  const auto given = c.attributes.find("num_tokens");
  if (given != c.attributes.end()) most = std::min(most, std::get<std::int64_t>(given->second));
  return std::min(most, mapped);
}

// The call of some of the tokens, in this order.
test_case call_of(const test_case& c, const std::vector<std::int64_t>& tokens) {
  test_case made = c;
  for (buffer& b : made.inputs) {
    const bool is_mapping = mappings.count(b.name) != 0;
    if (!is_mapping && rows.count(b.name) == 0) continue;
    const tensor_view from = c.input(b.name)->view();
    std::vector<std::int64_t> shape = b.at.shape;
    shape[0] = static_cast<std::int64_t>(tokens.size());
    const std::size_t bytes =
        size_of(b.type) * static_cast<std::size_t>(shape.size() == 2 ? shape[1] : 1);
    b.at = dense(shape);
    b.bytes.assign(tokens.size() * bytes, canary);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::byte* to = b.bytes.data() + i * bytes;
      if (is_mapping && tokens[i] >= from.dim(0)) {
        store(to, std::int64_t{-1});
      } else if (bytes != 0) {
        std::memcpy(to, from.element(tokens[i]), bytes);
      }
    }
  }
  if (made.attributes.count("num_tokens") != 0) {
    made.attributes["num_tokens"] = static_cast<std::int64_t>(tokens.size());
  }
  return made;
}

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> made;
  for (std::int64_t i = first; i < end; ++i) made.push_back(i);
  return made;
}

constexpr const char* insert_kernels[] = {"quantize_and_insert_k_cache",
                                          "mxfp4_k_norm_quant_insert",
                                          "indexer_k_norm_quant_insert",
                                          "mxfp4_fused_prologue",
                                          "dsa_fused_prologue",
                                          "indexer_k_norm_rope_store",
                                          "rope_quant_insert"};

// Those of level smoke and those past 2^31 bytes.
std::vector<case_spec> few_cases(std::string_view kernel) {
  std::vector<case_spec> all = cases_of(kernel, level::acceptance, 1);
  const auto further = [](const case_spec& c) {
    return c.from != level::smoke &&
           std::find(c.flags.begin(), c.flags.end(), "Past2GiB") == c.flags.end();
  };
  all.erase(std::remove_if(all.begin(), all.end(), further), all.end());
  return all;
}

// Cases of an insert kernel with a few tokens and a cache.
std::vector<test_case> cases_to_split(std::string_view kernel) {
  std::vector<test_case> found;
  for (const case_spec& spec : few_cases(kernel)) {
    test_case c = spec.build();
    const bool has_cache = std::any_of(c.inputs.begin(), c.inputs.end(),
                                       [](const buffer& b) { return caches.count(b.name) != 0; });
    const std::int64_t tokens = tokens_of(c);
    if (has_cache && tokens >= 2 && tokens <= 40) found.push_back(std::move(c));
  }
  return found;
}

TEST_P(properties, a_batch_in_two_calls_writes_the_same_bytes) {
  for (const char* kernel : insert_kernels) {
    if (!has(kernel)) continue;
    std::size_t changed = 0;
    const std::vector<test_case> all = cases_to_split(kernel);
    EXPECT_GE(all.size(), 5u) << kernel;
    for (const test_case& c : all) {
      const std::int64_t tokens = tokens_of(c), half = tokens / 2;
      const std::vector<buffer> at_once = caches_after(c);
      const std::vector<buffer> first = caches_after(call_of(c, numbers(0, half)));
      test_case rest = call_of(c, numbers(half, tokens));
      for (const buffer& b : first) input_of(rest, b.name) = b;
      EXPECT_EQ(digests(caches_after(rest)), digests(at_once)) << kernel << "/" << c.name;
      changed += digests(first) != digests(at_once);
    }
    EXPECT_GT(changed, all.size() / 2) << kernel;  // the second half wrote something
  }
}

TEST_P(properties, tokens_in_another_order_write_the_same_bytes) {
  for (const char* kernel : insert_kernels) {
    if (!has(kernel)) continue;
    for (const test_case& c : cases_to_split(kernel)) {
      std::vector<std::int64_t> order = numbers(0, tokens_of(c));
      draw from(seed_of(1, kernel, c.name));
      for (std::size_t i = order.size() - 1; i > 0; --i) {
        std::swap(order[i], order[from.below(i + 1)]);
      }
      EXPECT_EQ(digests(caches_after(call_of(c, order))), digests(caches_after(c)))
          << kernel << "/" << c.name;
    }
  }
}

// --- Standalone and fused key insert.

// The standalone call that inserts a prologue's index keys.
test_case standalone_of(const test_case& prologue, const char* kernel) {
  test_case made;
  made.kernel = kernel;
  made.name = prologue.name;
  made.attributes["norm_eps"] = prologue.attributes.at("eps");
  made.attributes["num_tokens"] = prologue.input("index_k")->at.shape[0];
  if (std::string_view(kernel) == "indexer_k_norm_quant_insert") {
    made.attributes["fp8_format"] = prologue.attributes.at("fp8_format");
  }
  for (const auto& [from, to] :
       {std::pair("index_k", "k"), std::pair("k_norm_weight", "norm_weight"),
        std::pair("k_norm_bias", "norm_bias"), std::pair("index_slot_mapping", "slot_mapping"),
        std::pair("index_cache", "kv_cache"),
        std::pair("topk_indices_buffer", "topk_indices_buffer")}) {
    made.inputs.push_back(*prologue.input(from));
    made.inputs.back().name = to;
  }
  return made;
}

struct twins {
  const char* standalone;
  const char* fused;
  std::int64_t record;
};
constexpr twins both_twins[] = {
    {"mxfp4_k_norm_quant_insert", "mxfp4_fused_prologue", 68},
    {"indexer_k_norm_quant_insert", "dsa_fused_prologue", 132},
};

// A key, weights and a bias that cancel: y = n * 2^21 + bias is about 1, so that an ulp of the
// normalized n shows in E4M3.
void make_hard(test_case& prologue, int number) {
  draw from(seed_of(1, prologue.kernel, std::to_string(number)));
  buffer& key = input_of(prologue, "index_k");
  buffer& weight = input_of(prologue, "k_norm_weight");
  buffer& bias = input_of(prologue, "k_norm_bias");
  double x[128], sum = 0, squares = 0;
  for (std::int64_t d = 0; d < 128; ++d) {
    const std::uint16_t bits = bf16_normal(from.one_in(2), from.between(-3, 3), from.below(128));
    store(key.view().element(0, d), bits);
    x[d] = double{std::bit_cast<float>(std::uint32_t{bits} << 16)};
    sum += x[d];
  }
  for (const double v : x) squares += (v - sum / 128) * (v - sum / 128);
  const double rstd = 1 / std::sqrt(squares / 128 + 1e-6);
  for (std::int64_t d = 0; d < 128; ++d) {
    store(weight.view().element(d), 0x1p21f);
    store(bias.view().element(d), static_cast<float>(1 - (x[d] - sum / 128) * rstd * 0x1p21));
  }
}

// Prologues of one token, whose keys are captured ones with bytes that depend on the order of the
// sums: captured ones for MXFP4, for FP8 made ones.
std::vector<test_case> hard_prologues(const twins& t) {
  const vector_file file(KVCTS_SOURCE_DIR "/vectors/captured/triton_h200_a.h5");
  test_case fused = file.read({"mxfp4_fused_prologue", "order_0"});
  fused.kernel = t.fused;
  fused.expected.clear();
  const std::vector<std::int64_t> shape = fused.input("index_cache")->at.shape;
  input_of(fused, "index_cache") =
      make_buffer("index_cache", dtype::u8, dense({shape[0], shape[1], t.record}));
  std::vector<test_case> found;
  for (int i = 0; i < (t.record == 132 ? 24 : 8); ++i) {
    fused.name = fmt::format("order_{}_w1", i % 8);
    const test_case key = file.read({"mxfp4_k_norm_quant_insert", fused.name});
    for (const auto& [from, to] :
         {std::pair("k", "index_k"), std::pair("norm_weight", "k_norm_weight"),
          std::pair("norm_bias", "k_norm_bias")}) {
      buffer& b = input_of(fused, to);
      b = *key.input(from);
      b.name = to;
    }
    if (t.record == 132) make_hard(fused, i);
    found.push_back(fused);
  }
  return found;
}

std::string cache_of(const std::vector<buffer>& results, const char* name) {
  const buffer* b = find_buffer(results, name);
  return content_digest(b->data(), b->size(), b->holes());
}

TEST_P(properties, standalone_and_fused_inserts_agree_for_equal_warps) {
  for (const twins& t : both_twins) {
    if (!has(t.standalone) || !has(t.fused)) continue;
    std::vector<test_case> prologues = hard_prologues(t);
    ASSERT_GE(prologues.size(), 8u);
    for (const case_spec& spec : few_cases(t.fused)) {
      test_case c = spec.build();
      if (c.input("index_cache") == nullptr || c.input("index_slot_mapping") == nullptr) continue;
      if (c.input("index_k")->at.shape[0] <= 40) prologues.push_back(std::move(c));
    }
    EXPECT_GE(prologues.size(), 13u);
    std::size_t changed = 0;
    for (test_case& fused : prologues) {
      test_case alone = standalone_of(fused, t.standalone);
      for (const std::int64_t warps : {1, 2, 4}) {
        fused.attributes["num_warps"] = alone.attributes["num_warps"] = warps;
        const std::string cache = cache_of(run(fused), "index_cache");
        EXPECT_EQ(cache_of(run(alone), "kv_cache"), cache)
            << t.fused << "/" << fused.name << ", " << warps << " warps";
        const buffer& before = input_of(fused, "index_cache");
        changed += cache != content_digest(before.data(), before.size(), before.holes());
      }
    }
    EXPECT_GT(changed, prologues.size());
  }
}

// Each form's default: 1 warp standalone, 4 fused.
TEST_P(properties, standalone_and_fused_inserts_differ_by_default_on_hard_rows) {
  for (const twins& t : both_twins) {
    if (!has(t.standalone) || !has(t.fused)) continue;
    int differ = 0;
    for (test_case& fused : hard_prologues(t)) {
      test_case alone = standalone_of(fused, t.standalone);
      fused.attributes.erase("num_warps");
      differ += cache_of(run(fused), "index_cache") != cache_of(run(alone), "kv_cache");
    }
    EXPECT_GT(differ, 0) << t.fused;
  }
}

// --- Insert, then gather: the rows are what the record says, by a decoder of its own.

// A value that bf16 holds exactly.
std::uint16_t bf16_of(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  EXPECT_EQ(bits & 0xFFFF, 0u) << value;
  return static_cast<std::uint16_t>(bits >> 16);
}

// 512 bf16 of a token at `position` of a page.
std::vector<std::uint16_t> decoded(const std::byte* page, std::int64_t block_size,
                                   std::int64_t record, std::int64_t position, bool fnuz) {
  std::vector<std::uint16_t> row;
  for (const double value : decode_record(page, block_size, record, position, fnuz)) {
    row.push_back(bf16_of(value));
  }
  return row;
}

struct round_trip {
  const char* kernel;
  const char* record_name;
  std::int64_t record;
  bool fnuz = false;
};
constexpr round_trip round_trips[] = {
    {"quantize_and_insert_k_cache", "", 584},
    {"quantize_and_insert_k_cache", "", 528},
    {"quantize_and_insert_k_cache", "", 584, true},
    {"quantize_and_insert_k_cache", "", 528, true},
    {"rope_quant_insert", "v4", 584},
    {"rope_quant_insert", "v41_mxfp8", 528},
    {"rope_quant_insert", "v41_nvfp4", 288},
};
constexpr std::int64_t tokens = 23, block_size = 5, blocks = 6;

// Tokens t = 0, 1, ... in the slots tokens - 1 - t + 2.
std::int64_t slot_of(std::int64_t t) { return tokens + 1 - t; }

test_case insert_of(const round_trip& r, content what) {
  draw from(seed_of(1, r.kernel, fmt::format("{}_{}", r.record, name_of(what))));
  const bool rotates = std::string_view(r.kernel) == "rope_quant_insert";
  test_case made;
  made.kernel = r.kernel;
  buffer k = make_buffer(rotates ? "latent" : "k", dtype::bf16, dense({tokens, 512}));
  const block_rules rules = e4m3_rules(r.fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);
  for (std::int64_t i = 0; i < tokens * 16; ++i) {
    std::uint16_t block[32];
    fill_block(from, what, rules, i, block, 32);
    std::memcpy(k.bytes.data() + i * 64, block, 64);
  }
  made.inputs.push_back(std::move(k));
  made.inputs.push_back(
      make_buffer(rotates ? "kv_cache" : "k_cache", dtype::u8,
                  {{blocks, block_size, r.record}, {block_size * r.record + 48, r.record, 1}}));
  buffer slots = make_buffer("slot_mapping", dtype::i64, dense({tokens}));
  for (std::int64_t t = 0; t < tokens; ++t) store(slots.view().element(t), slot_of(t));
  made.inputs.push_back(std::move(slots));
  if (!rotates) {
    made.attributes = {{"block_size", block_size},
                       {"use_fnuz", std::int64_t{r.fnuz ? 1 : 0}},
                       {"bytes_per_token", r.record}};
    return made;
  }
  made.attributes = {{"compress_ratio", std::int64_t{1}}, {"record", std::string(r.record_name)}};
  buffer positions = make_buffer("positions", dtype::i64, dense({tokens}));
  buffer cos_sin = make_buffer("cos_sin_cache", dtype::f32, dense({tokens, 64}));
  for (std::int64_t t = 0; t < tokens; ++t) {
    store(positions.view().element(t), t);
    for (std::int64_t i = 0; i < 64; ++i) {
      store(cos_sin.view().element(t, i), static_cast<float>(from.between(-64, 64)) / 64);
    }
  }
  made.inputs.push_back(std::move(positions));
  made.inputs.push_back(std::move(cos_sin));
  return made;
}

// All slots that were written, as one request over the pages 0, 1, ...
test_case gather_of(const round_trip& r, const buffer& cache) {
  test_case made;
  made.kernel = "dequantize_and_gather_k_cache";
  made.attributes = {{"block_size", block_size},
                     {"offset", std::int64_t{1}},
                     {"use_fnuz", std::int64_t{r.fnuz ? 1 : 0}}};
  made.inputs.push_back(make_buffer("out", dtype::bf16, dense({1, tokens + 1, 512})));
  made.inputs.push_back(cache);
  made.inputs.back().name = "k_cache";
  buffer table = make_buffer("block_table", dtype::i32, dense({1, blocks}));
  for (std::int64_t i = 0; i < blocks; ++i) {
    store(table.view().element(0, i), static_cast<std::int32_t>(i));
  }
  made.inputs.push_back(std::move(table));
  for (const auto& [name, value] :
       {std::pair("seq_lens", tokens + 2), std::pair("gather_lens", tokens)}) {
    made.inputs.push_back(make_buffer(name, dtype::i32, dense({1})));
    store(made.inputs.back().bytes.data(), static_cast<std::int32_t>(value));
  }
  return made;
}

double value_of(std::uint16_t bf16) {
  return double{std::bit_cast<float>(std::uint32_t{bf16} << 16)};
}

// Half a step of E4M3 at the block's amax, whose code may be half the limit.
void expect_near(const std::vector<std::uint16_t>& row, const std::byte* k, std::int64_t block) {
  for (std::int64_t first = 0; first < 512; first += block) {
    double amax = 0, error = 0;
    for (std::int64_t d = first; d < first + block; ++d) {
      const double x = value_of(load<std::uint16_t>(k + 2 * d));
      amax = std::max(amax, std::abs(x));
      error = std::max(error, std::abs(x - value_of(row[static_cast<std::size_t>(d)])));
    }
    const bool copied = block == 64 && first == 448;
    EXPECT_LE(error, copied ? 0 : amax / 16) << "dims from " << first;
  }
}

TEST_P(properties, a_gather_gives_back_what_the_records_say) {
  if (!has("dequantize_and_gather_k_cache")) return;
  for (const round_trip& r : round_trips) {
    if (!has(r.kernel)) continue;
    for (const content what : {content::ordinary, content::ties, content::exact_scale,
                               content::boundary, content::distinct, content::zero}) {
      const test_case insert = insert_of(r, what);
      const std::vector<buffer> cache = caches_after(insert);
      ASSERT_EQ(cache.size(), 1u);
      const std::vector<buffer> out = run(gather_of(r, cache[0]));
      const tensor_view pages = cache[0].view(), gathered = out[0].view();
      for (std::int64_t t = 0; t < tokens; ++t) {
        const std::int64_t slot = slot_of(t);
        const std::vector<std::uint16_t> want =
            decoded(pages.element(slot / block_size, 0, 0), block_size, r.record, slot % block_size,
                    r.fnuz);
        // The request's last `tokens` positions are the slots from 2 on.
        const std::byte* got = gathered.element(0, 1 + slot - 2, 0);
        ASSERT_EQ(std::memcmp(got, want.data(), 1024), 0)
            << r.kernel << " " << r.record << " " << name_of(what) << ", token " << t;
        if (insert.kernel == "quantize_and_insert_k_cache") {
          expect_near(want, insert.inputs[0].view().element(t), r.record == 584 ? 64 : 32);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvcts
