#include "fuzz/shapes.h"

#include <algorithm>
#include <memory>

#include "conformance/exhaustive/examined.h"

namespace kvcts {
namespace {

// Tokens to a bound, heads to a bound, and the knobs that are gone through: of the plan, whose
// values they replace, or of the contract (presence, dtypes, gaps, choices: by number).
struct bounds {
  std::string_view kernel;
  std::size_t tokens = 0, heads = 0;
  std::vector<fuzz_knob> knobs = {};
};

std::vector<bounds> all_bounds() {
  const std::vector<std::int64_t> dims = {32, 64, 128, 256, 512, 1024};
  const std::vector<std::int64_t> two = {0, 1}, three = {0, 1, 2}, pages = {1, 2, 3, 4};
  const std::vector<fuzz_knob> keys = {
      {"D", dims}, {"B", pages}, {"num_warps", {1, 2, 4}}, {"K", three}};
  const std::vector<fuzz_knob> prologue = {{"D", dims},
                                           {"num_warps", {1, 2, 4}},
                                           {"mla_block_size", {1, 2, 3}},
                                           {"index_block_size", {1, 2, 3}},
                                           {"has_mla_cache", two},
                                           {"has_index_cache", two}};
  return {
      {"mxfp4_q_quant",
       8,
       8,
       {{"more_heads", {0, 1, 2, 3}}, {"gap_index_q", {0, 8}}, {"type_index_weights", two}}},
      {"mxfp4_k_norm_quant_insert", 5, 0, keys},
      {"mxfp4_fused_prologue", 3, 0, prologue},
      {"indexer_k_norm_quant_insert", 5, 0, keys},
      {"dsa_fused_prologue", 3, 0, prologue},
      {"quantize_and_insert_k_cache",
       8,
       0,
       {{"block_size", {1, 2, 3, 4, 5, 6, 7, 8}},
        {"bytes_per_token", {584, 528}},
        {"use_fnuz", two},
        {"gap_k_cache", {0, 16}},
        {"negative", two}}},
      {"dequantize_and_gather_k_cache",
       3,
       0,
       {{"block_size", pages},
        {"columns", {1, 2, 3}},
        {"offset", three},
        {"record_bytes", {584, 528, 288}},
        {"has_gather_lens", two},
        {"use_fnuz", two}}},
      {"compute_global_topk_indices_and_lens",
       4,
       0,
       {{"K", {0, 1, 2, 3, 4, 5}},
        {"requests", {1, 2, 3}},
        {"columns", {1, 2, 3}},
        {"block_size", pages}}},
      {"combine_topk_swa_indices",
       4,
       0,
       {{"topk", {0, 1, 2, 3}},
        {"window_size", {0, 1, 2, 3}},
        {"compress_ratio", three},
        {"requests", {1, 2, 3}},
        {"padding", two},
        {"N", three}}},
      {"build_flashinfer_mixed_sparse_indices",
       4,
       0,
       {{"decode", three},
        {"window_size", three},
        {"topk", three},
        {"width", three},
        {"form", {0, 1, 2, 3, 4}},
        {"compress_ratio", three},
        {"requests", {1, 2}}}},
      {"fused_indexer_q_rope_quant",
       4,
       4,
       {{"D", {32, 64, 96, 128}}, {"rotated", {0, 2, 4, 32, 64, 128}}, {"use_fp4", two}}},
      {"fused_inv_rope_fp8_quant",
       5,
       0,
       {{"n_groups", {1, 2, 3}},
        {"heads_per_group", {1, 2, 3}},
        {"form", {0, 1, 2, 3, 4, 5}},
        {"quantize", two},
        {"tma_aligned_scales", two}}},
      {"indexer_k_norm_rope_store",
       5,
       0,
       {{"page", {1, 2, 3, 4, 16, 17}},
        {"use_fp4_cache", two},
        {"shuffle", two},
        {"compress_ratio", {1, 2}},
        {"more_rows", two}}},
      {"fused_save_compress_norm",
       5,
       0,
       {{"capacity", {1, 2, 3, 4}},
        {"requests", {1, 2, 3}},
        {"compress_ratio", {1, 2}},
        {"more_rows", three}}},
      {"rope_quant_insert",
       5,
       0,
       {{"B", pages},
        {"record_choice", {0, 1, 2, 3, 4}},
        {"compress_ratio", {1, 2}},
        {"more_rows", three}}},
      {"fused_layout",
       0,
       0,
       {{"heads", {1, 2, 3, 4, 5, 6, 7, 8}},
        {"head_dim", {32, 64, 96, 128}},
        {"groups", {0, 1, 2, 3}},
        {"op_choice", three},
        {"further", three},
        {"row", {0, 1, 2, 3, 4}}}},
      {"fused_q_kv_rmsnorm_quant",
       5,
       0,
       {{"Q", {32, 64, 96, 128}}, {"K", {1, 2, 3, 4, 5, 6, 7, 8}}, {"norm", {0, 1}}}},
  };
}

std::string text_of(const bounds& b) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (b.tokens != 0) add("0.." + std::to_string(b.tokens) + " tokens");
  if (b.heads != 0) add("1.." + std::to_string(b.heads) + " heads");
  for (const fuzz_knob& k : b.knobs) {
    std::string values;
    for (const std::int64_t value : k.values) values += " " + std::to_string(value);
    add(std::string(k.name) + values);
  }
  return text;
}

std::vector<shape_bound> make_bounds() {
  std::vector<shape_bound> all;
  for (const bounds& b : all_bounds()) {
    shape_bound made;
    made.plan = fuzz_plan_of(b.kernel);
    made.tokens = b.tokens;
    made.heads = b.heads;
    made.knobs = b.knobs.size();
    made.text = text_of(b);
    // In front; those of the plan that they replace go.
    std::vector<fuzz_knob> knobs = b.knobs;
    for (const fuzz_knob& k : made.plan.knobs) {
      const bool replaced =
          std::any_of(b.knobs.begin(), b.knobs.end(),
                      [&](const fuzz_knob& other) { return other.name == k.name; });
      if (!replaced) knobs.push_back(k);
    }
    made.plan.knobs = std::move(knobs);
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace

std::uint64_t shape_bound::shapes() const {
  std::uint64_t count = (tokens + 1) * std::max<std::size_t>(heads, 1);
  for (std::size_t i = 0; i < knobs; ++i) count *= plan.knobs[i].values.size();
  return count;
}

const std::vector<shape_bound>& shape_bounds() {
  static const std::vector<shape_bound> all = make_bounds();
  return all;
}

// The number's digits in mixed radix; sizes turn fastest, so that pieces of a sweep cost the same.
fuzz_case shape_of(const shape_bound& bound, std::uint64_t number) {
  fuzz_case c;
  c.plan = &bound.plan;
  c.seed = seed_of(1, bound.plan.kernel, "shape_" + std::to_string(number));
  draw from(c.seed);
  const auto digit = [&](std::size_t radix) {
    const std::uint64_t low = number % radix;
    number /= radix;
    return static_cast<std::size_t>(low);
  };
  const auto numbers = [](std::size_t count) {
    std::vector<std::uint32_t> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::uint32_t>(i);
    return all;
  };
  c.tokens = numbers(digit(bound.tokens + 1));
  c.heads = numbers(bound.heads == 0 ? 1 : 1 + digit(bound.heads));
  const std::vector<fuzz_knob>& knobs = knobs_of(bound.plan);
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    const std::size_t values = knobs[i].values.size();
    c.knobs.push_back(
        static_cast<std::uint8_t>(i < bound.knobs ? digit(values) : from.below(values)));
  }
  return c;
}

std::string words_of(const shape_bound& bound, const fuzz_case& c) {
  std::string words = std::to_string(c.tokens.size()) + " tokens";
  if (bound.heads != 0) words += ", " + std::to_string(c.heads.size()) + " heads";
  for (std::size_t i = 0; i < bound.knobs; ++i) {
    const fuzz_knob& k = bound.plan.knobs[i];
    words += ", " + std::string(k.name) + " " + std::to_string(k.values[c.knobs[i]]);
  }
  return words;
}

std::vector<sweep> shape_sweeps(candidate& subject, profile p) {
  const auto with = std::make_shared<examined_cases>(subject, p);
  std::vector<sweep> all;
  for (const shape_bound& bound : shape_bounds()) {
    if (!subject.supports(bound.plan.kernel)) continue;
    sweep made;
    made.name = "shape." + std::string(bound.plan.kernel);
    made.text = "every shape: " + bound.text;
    made.inputs = bound.shapes();
    made.piece = 64;
    made.check = [with, &bound](const sweep_range& range) {
      sweep_finding found;
      for (std::uint64_t i = 0; i < range.count; ++i) {
        const std::uint64_t number = range.first + i * range.stride;
        const fuzz_case c = shape_of(bound, number);
        const std::string what =
            "shape " + std::to_string(number) + " (" + words_of(bound, c) + ")";
        test_case built = build(c);
        built.name = what;
        found.add(with->run(built, 1, what));
      }
      return found;
    };
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace kvcts
