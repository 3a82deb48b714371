#include "fuzz/plan.h"

#include <stdexcept>
#include <string>

#include "fuzz/case.h"

namespace kvcts {
namespace {

const fuzz_knob block_sizes = {"B", {1, 3, 16, 64}};
const fuzz_knob ratios = {"compress_ratio", {1, 2}};
const fuzz_knob table_rows = {"max_pos", {2, 1, 5, 33}};

// Rows past the mapping, slots past the rows.
const fuzz_knob more_rows = {"more_rows", {0, 1, 3}};

fuzz_plan key_insert(std::string_view kernel, fuzz_rules rules, bool fp8) {
  return {
      .kernel = kernel,
      .knobs = {{"D", {32, 64, 128, 256, 512, 1024}},
                block_sizes,
                {"K", {1, 0, 2, 7, 130}},
                more_rows,
                {"fewer_slots", {0, 1, 3}},
                {"more_slots", {0, 2}},
                {"more_topk", {0, 1, 3}},
                {"num_warps", {1, 2, 4}},
                {"norm", {0, 1, 2, 3}}},
      .derived = {{"num_tokens", "T"},
                  {"N", "T + more_rows"},
                  {"S", "max(T - fewer_slots, 0) + more_slots"},
                  {"R", "T + more_topk"}},
      .fills = {{.argument = "k", .kind = fill_kind::rows, .of = fp8 ? "D" : "32", .rules = rules},
                {.argument = "norm_weight",
                 .kind = fill_kind::norm_weight,
                 .of = fp8 ? "D" : "32",
                 .with = "k",
                 .bias = "norm_bias",
                 .rules = rules,
                 .sum = "LayerNorm of the index key"},
                {.argument = "norm_bias", .kind = fill_kind::norm_bias},
                {.argument = "slot_mapping", .kind = fill_kind::slots, .with = "kv_cache"},
                {.argument = "kv_cache", .kind = fill_kind::pages},
                {.argument = "topk_indices_buffer"}},
      .f32_scales = fp8,
  };
}

fuzz_plan prologue(std::string_view kernel, fuzz_rules rules, bool fp8) {
  return {
      .kernel = kernel,
      .knobs = {{"Q", {64, 1, 33, 512, 1536}},
                {"D", {32, 64, 128, 256, 512, 1024}},
                {"mla_block_size", {1, 3, 16}},
                {"index_block_size", {1, 3, 16, 64}},
                {"K", {1, 0, 2, 7}},
                {"more_topk", {0, 1}},
                {"mla_fewer", {0, 1, 2}},
                {"index_fewer", {0, 1, 2}},
                {"num_warps", {4, 1, 2}},
                {"norm", {0, 1, 2, 3}}},
      .derived = {{"R", "T + more_topk"},
                  {"mla_slots", "max(T - mla_fewer, 0)"},
                  {"index_slots", "max(T - index_fewer, 0)"}},
      .fills =
          {{.argument = "q_c", .kind = fill_kind::rows, .of = "64"},
           {.argument = "kv_c",
            .kind = fill_kind::rows,
            .of = "128",
            .rules = fuzz_rules::e4m3_down},
           {.argument = "k_pe", .kind = fill_kind::numbers},
           {.argument = "index_k", .kind = fill_kind::rows, .of = fp8 ? "D" : "32", .rules = rules},
           {.argument = "q_norm_weight",
            .kind = fill_kind::norm_weight,
            .of = "64",
            .with = "q_c",
            .sum = "RMSNorm of q_c"},
           {.argument = "kv_norm_weight",
            .kind = fill_kind::norm_weight,
            .of = "128",
            .with = "kv_c",
            .rules = fuzz_rules::e4m3_down,
            .sum = "RMSNorm of kv_c"},
           {.argument = "k_norm_weight",
            .kind = fill_kind::norm_weight,
            .of = fp8 ? "D" : "32",
            .with = "index_k",
            .bias = "k_norm_bias",
            .rules = rules,
            .sum = "LayerNorm of the index key"},
           {.argument = "k_norm_bias", .kind = fill_kind::norm_bias},
           {.argument = "topk_indices_buffer"},
           {.argument = "mla_cache", .kind = fill_kind::pages},
           {.argument = "mla_slot_mapping", .kind = fill_kind::slots, .with = "mla_cache"},
           {.argument = "index_cache", .kind = fill_kind::pages},
           {.argument = "index_slot_mapping", .kind = fill_kind::slots, .with = "index_cache"}},
      .f32_scales = true,
  };
}

std::vector<fuzz_plan> all_plans() {
  std::vector<fuzz_plan> all;
  all.push_back({
      .kernel = "mxfp4_q_quant",
      .knobs = {{"more_heads", {0, 1, 5, 64}}},
      .derived = {{"padded_num_heads", "H + more_heads"}},
      .fills = {{.argument = "index_q", .kind = fill_kind::rows, .of = "32"},
                {.argument = "index_weights", .kind = fill_kind::numbers}},
  });
  all.push_back(key_insert("mxfp4_k_norm_quant_insert", fuzz_rules::e2m1, false));
  all.push_back(prologue("mxfp4_fused_prologue", fuzz_rules::e2m1, false));
  all.push_back(key_insert("indexer_k_norm_quant_insert", fuzz_rules::e4m3, true));
  all.push_back(prologue("dsa_fused_prologue", fuzz_rules::e4m3, true));
  all.push_back({
      .kernel = "quantize_and_insert_k_cache",
      .knobs = {{"block_size", {1, 3, 16, 64}}, {"bytes_per_token", {584, 528}}, more_rows},
      .derived = {{"N", "T + more_rows"}, {"S", "T"}},
      .fills = {{.argument = "k",
                 .kind = fill_kind::rows,
                 .of = "32 + 32 * (bytes_per_token == 584)",
                 .rules = fuzz_rules::e4m3},
                {.argument = "k_cache", .kind = fill_kind::pages},
                {.argument = "slot_mapping", .kind = fill_kind::slots, .with = "k_cache"}},
  });
  all.push_back({
      .kernel = "dequantize_and_gather_k_cache",
      .knobs = {{"block_size", {1, 3, 16, 64}},
                {"record_bytes", {584, 528, 288}},
                {"blocks", {4, 1, 9}},
                {"columns", {1, 2, 5}},
                {"offset", {0, 1, 7}},
                {"more_rows", {0, 1}}},
      .derived = {{"R", "T"}, {"use_fnuz", "use_fnuz * (record_bytes != 288)"}},
      .fills = {{.argument = "out"}, {.argument = "k_cache"}},
      .indices = fuzz_indices::gather,
  });
  all.push_back({
      .kernel = "compute_global_topk_indices_and_lens",
      .knobs = {{"K", {1, 0, 2, 7, 65, 300}},
                {"requests", {1, 2, 5}},
                {"columns", {1, 2, 9}},
                {"block_size", {1, 3, 64}},
                {"large", {0, 1}}},
      .indices = fuzz_indices::global_topk,
  });
  all.push_back({
      .kernel = "combine_topk_swa_indices",
      .knobs = {{"requests", {1, 2, 5}},
                {"padding", {0, 1, 3}},
                {"window_size", {4, 0, 1, 100}},
                {"compress_ratio", {1, 0, 2, 4}},
                {"topk", {2, 0, 1, 70}},
                {"spare", {0, 1, 5}},
                {"N", {8, 0, 1, 40}},
                {"more_M", {0, 3, 1000}},
                {"first_start", {0, 3}},
                {"context", {5, 0, 60}},
                {"gathered", {0, 1}}},
      .indices = fuzz_indices::combined,
  });
  all.push_back({
      .kernel = "build_flashinfer_mixed_sparse_indices",
      .knobs = {{"decode", {0, 1, 3, 9}},
                {"requests", {1, 2, 5}},
                {"window_size", {4, 0, 1, 33}},
                {"wider", {0, 1, 3}},
                {"compress_ratio", {1, 0, 2, 4}},
                {"topk", {2, 0, 1, 9, 40}},
                {"prefill_width", {2, 0, 9, 41}},
                {"width", {2, 0, 1, 7, 33}},
                {"form", {0, 1, 2, 3, 4}},
                {"swa_block_size", {4, 1, 16}},
                {"compressed_block_size", {4, 1, 3}},
                {"swa_block_span", {0, 1, 5, 40}},
                {"compressed_block_span", {0, 1, 6, 40}},
                {"has_compressed_block_table", {1, 0}},
                {"replay", {0, 1, 2}},
                {"context", {5, 0, 40}}},
      .indices = fuzz_indices::mixed,
  });
  all.push_back({
      .kernel = "fused_indexer_q_rope_quant",
      .knobs = {{"D", {128, 32, 64, 96, 160}}, {"rotated", {64, 0, 2, 32, 160}}, table_rows},
      .derived = {{"R", "min(rotated, D)"},
                  {"weights_out_dtype_choice", "weights_out_dtype_choice * use_fp4"}},
      .fills = {{.argument = "positions",
                 .kind = fill_kind::positions,
                 .with = "index_q_cos_sin_cache"},
                {.argument = "index_q",
                 .kind = fill_kind::rows,
                 .of = "D * !use_fp4 + 32 * use_fp4",
                 .rules = fuzz_rules::e4m3},
                {.argument = "index_q_cos_sin_cache", .kind = fill_kind::table},
                {.argument = "index_weights", .kind = fill_kind::numbers}},
  });
  all.push_back({
      .kernel = "fused_inv_rope_fp8_quant",
      .knobs = {{"n_groups", {1, 2, 3}},
                {"heads_per_group", {1, 2, 3}},
                {"form", {0, 1, 2, 3, 4, 5}},
                table_rows,
                {"quantize", {1, 0}}},
      .derived = {{"H", "n_groups * heads_per_group"},
                  {"nope_dim",
                   "448 - 384 * (form == 1) - 448 * (form == 2) - 320 * (form == 3) - "
                   "256 * (form == 4) - 388 * (form == 5)"},
                  {"rope_dim", "64 + 64 * (form == 2) - 64 * (form == 3) - 60 * (form == 5)"},
                  {"quant_group_size",
                   "128 - 96 * (form == 1) - 96 * (form == 2) - 96 * (form == 3) - "
                   "64 * (form == 4) - 112 * (form == 5)"},
                  {"D", "nope_dim + rope_dim"}},
      .fills = {{.argument = "o",
                 .kind = fill_kind::rows,
                 .of = "quant_group_size",
                 .rules = fuzz_rules::e4m3_low},
                {.argument = "positions", .kind = fill_kind::positions, .with = "cos_sin_cache"},
                {.argument = "cos_sin_cache", .kind = fill_kind::table}},
  });
  all.push_back({
      .kernel = "indexer_k_norm_rope_store",
      .knobs = {{"page", {1, 3, 16, 64}}, ratios, table_rows, more_rows, {"norm", {0, 1, 2, 3}}},
      .derived = {{"shuffle", "shuffle * !use_fp4_cache"},
                  {"B", "page * !shuffle + ceil(page, 16) * shuffle"},
                  {"S", "T"},
                  {"N", "T + more_rows"},
                  {"P", "T + more_rows"}},
      .fills = {{.argument = "k_pre",
                 .kind = fill_kind::rows,
                 .of = "128 - 96 * use_fp4_cache",
                 .rules = fuzz_rules::e4m3},
                {.argument = "positions",
                 .kind = fill_kind::positions,
                 .with = "cos_sin_cache",
                 .bias = "kv_slot_mapping"},
                {.argument = "cos_sin_cache", .kind = fill_kind::table},
                {.argument = "rms_norm_weight",
                 .kind = fill_kind::norm_weight,
                 .of = "128 - 96 * use_fp4_cache",
                 .with = "k_pre",
                 .rules = fuzz_rules::e4m3,
                 .sum = "RMSNorm of k_pre"},
                {.argument = "k_cache", .kind = fill_kind::pages},
                {.argument = "kv_slot_mapping", .kind = fill_kind::slots, .with = "k_cache"}},
      .f32_scales = true,
  });
  all.push_back({
      .kernel = "fused_save_compress_norm",
      .knobs = {ratios,
                {"capacity", {4, 1, 2, 8}},
                {"requests", {1, 2, 4}},
                {"more_rows", {0, 1, 2}},
                {"norm", {0, 1, 2, 3}}},
      .derived = {{"S", "T"},
                  {"P", "T + more_rows"},
                  {"L", "T + more_rows"},
                  {"assigned", "T"},
                  {"starts", "requests + 1"},
                  {"pages", "requests + 1"},
                  {"has_state_cache", "max(has_state_cache, compress_ratio - 1)"},
                  {"has_query_start_loc", "max(has_query_start_loc, compress_ratio - 1)"},
                  {"has_token_to_req_indices", "max(has_token_to_req_indices, compress_ratio - 1)"},
                  // T is what the contract calls the rows of kv_score.
                  {"T", "T + more_rows"}},
      .fills = {{.argument = "kv_score", .kind = fill_kind::rows, .of = "512"},
                {.argument = "state_cache", .kind = fill_kind::numbers},
                {.argument = "rms_norm_weight",
                 .kind = fill_kind::norm_weight,
                 .of = "512",
                 .with = "kv_score"},
                {.argument = "latent_out"}},
      .indices = fuzz_indices::compressed,
  });
  all.push_back({
      .kernel = "rope_quant_insert",
      .knobs = {block_sizes, ratios, table_rows, more_rows},
      .derived = {{"S", "T"},
                  {"N", "T + more_rows"},
                  {"P", "T + more_rows"},
                  {"row",
                   "512 + 72 * (record == 'v4') + 16 * (record == 'v41_mxfp8') - "
                   "224 * (record == 'v41_nvfp4')"},
                  {"has_fp8_scale", "max(has_fp8_scale, record == 'fp8')"}},
      .fills = {{.argument = "latent",
                 .kind = fill_kind::rows,
                 .of = "32 + 32 * (record == 'v4') - 16 * (record == 'v41_nvfp4')",
                 .rules = fuzz_rules::nvfp4},
                {.argument = "positions",
                 .kind = fill_kind::positions,
                 .with = "cos_sin_cache",
                 .bias = "slot_mapping"},
                {.argument = "cos_sin_cache", .kind = fill_kind::table},
                {.argument = "kv_cache", .kind = fill_kind::pages},
                {.argument = "slot_mapping", .kind = fill_kind::slots, .with = "kv_cache"},
                {.argument = "fp8_scale", .kind = fill_kind::numbers}},
  });
  all.push_back({
      .kernel = "fused_layout",
      .knobs = {{"heads", {1, 2, 3, 7}},
                {"head_dim", {32, 64, 96}},
                {"groups", {1, 2, 3, 0}},
                {"further", {1, 0, 2}}},
      .derived = {{"N",
                   "heads * head_dim * (op == 'q') + heads * head_dim * groups * (op == 'o') + "
                   "heads * (head_dim / 32) * groups * (op == 'o_chunk')"}},
      .fills = {{.argument = "x"}},
  });
  all.push_back({
      .kernel = "fused_q_kv_rmsnorm_quant",
      .knobs = {{"Q", {32, 64, 96, 1056, 1536}}, {"K", {64, 1, 7, 512}}, {"norm", {0, 1, 2, 3}}},
      .fills =
          {{.argument = "qr", .kind = fill_kind::rows, .of = "32", .rules = fuzz_rules::e4m3_down},
           {.argument = "kv", .kind = fill_kind::rows, .of = "64"},
           {.argument = "q_weight",
            .kind = fill_kind::norm_weight,
            .of = "32",
            .with = "qr",
            .rules = fuzz_rules::e4m3_down,
            .sum = "RMSNorm of qr"},
           {.argument = "kv_weight",
            .kind = fill_kind::norm_weight,
            .of = "64",
            .with = "kv",
            .sum = "RMSNorm of kv"}},
  });
  return all;
}

}  // namespace

const std::vector<fuzz_plan>& fuzz_plans() {
  static const std::vector<fuzz_plan> plans = all_plans();
  return plans;
}

const fuzz_plan& fuzz_plan_of(std::string_view kernel) {
  for (const fuzz_plan& plan : fuzz_plans()) {
    if (plan.kernel == kernel) return plan;
  }
  throw std::logic_error("no fuzz plan for " + std::string(kernel));
}

}  // namespace kvcts
