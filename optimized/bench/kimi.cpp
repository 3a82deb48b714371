// Problems of the Kimi K3.1 kernels.
#include "optimized/bench/build.h"

namespace kvcts {
namespace {

constexpr std::int64_t topk = 2048;

bench_problem query(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t heads = 32;
  problem_builder b(op.kernel, tokens_text(tokens) + " H=32");
  b.values("index_q", dtype::bf16, {tokens, heads, 128});
  b.values("index_weights", dtype::bf16, {tokens, heads});
  b.output("q_packed", dtype::u8, {tokens, heads, 64});
  b.output("q_scale", dtype::i32, {tokens, heads});
  b.output("weights", dtype::f32, {tokens, heads});
  b.attribute("weight_scale", 0.08838834764831845);
  b.attribute("padded_num_heads", heads);
  return b.done(tokens * heads * (256 + 2 + 64 + 4 + 4));
}

// Form: bytes of the index key's record, 68 (MXFP4) or 132 (FP8).
bench_problem key_insert(const bench_op& op, std::int64_t tokens) {
  problem_builder b(op.kernel, tokens_text(tokens) + " K=2048");
  b.values("k", dtype::bf16, {tokens, 128});
  b.values("norm_weight", dtype::f32, {128});
  b.values("norm_bias", dtype::f32, {128});
  b.slots("slot_mapping", tokens);
  b.output("kv_cache", dtype::u8, {pages_for(tokens), bench_page, op.form});
  b.output("topk_indices_buffer", dtype::i32, {tokens, topk});
  b.attribute("norm_eps", 1e-6);
  b.attribute("num_tokens", tokens);
  return b.done(2 * 128 * 4 + tokens * (256 + 8 + op.form + topk * 4));
}

bench_problem prologue(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t query_dims = 1536;
  problem_builder b(op.kernel, tokens_text(tokens) + " Q=1536 K=2048");
  b.values("q_c", dtype::bf16, {tokens, query_dims});
  b.values("kv_c", dtype::bf16, {tokens, 512});
  b.values("k_pe", dtype::bf16, {tokens, 64});
  b.values("index_k", dtype::bf16, {tokens, 128});
  b.values("q_norm_weight", dtype::bf16, {query_dims});
  b.values("kv_norm_weight", dtype::bf16, {512});
  b.values("k_norm_weight", dtype::f32, {128});
  b.values("k_norm_bias", dtype::f32, {128});
  b.output("topk_indices_buffer", dtype::i32, {tokens, topk});
  b.output("mla_cache", dtype::u8, {pages_for(tokens), bench_page, 656});
  b.slots("mla_slot_mapping", tokens);
  b.output("index_cache", dtype::u8, {pages_for(tokens), bench_page, op.form});
  b.slots("index_slot_mapping", tokens);
  b.output("q_c_normed", dtype::bf16, {tokens, query_dims});
  b.output("kv_c_normed", dtype::bf16, {tokens, 512});
  b.attribute("eps", 1e-6);
  b.attribute("fp8_format", "e4m3fn");
  constexpr std::int64_t weights = query_dims * 2 + 512 * 2 + 2 * 128 * 4;
  constexpr std::int64_t inputs = query_dims * 2 + 1024 + 128 + 256 + 2 * 8;
  constexpr std::int64_t outputs = topk * 4 + 656 + query_dims * 2 + 1024;
  return b.done(weights + tokens * (inputs + outputs + op.form));
}

}  // namespace

void add_kimi_ops(std::vector<bench_op>& to) {
  to.push_back({.name = "mxfp4_q_quant",
                .kernel = "mxfp4_q_quant",
                .make = query,
                .tokens = {16384},
                .copy_target = 0.90,
                .cpu_tokens = 256});
  to.push_back({.name = "mxfp4_k_norm_quant_insert",
                .kernel = "mxfp4_k_norm_quant_insert",
                .make = key_insert,
                .form = 68,
                .tokens = {65536},
                .copy_target = 0.93,
                .cpu_tokens = 1024});
  to.push_back({.name = "mxfp4_fused_prologue",
                .kernel = "mxfp4_fused_prologue",
                .make = prologue,
                .form = 68,
                .tokens = {16384, 65536},
                .copy_target = 0.80,
                .cpu_tokens = 256});
  to.push_back({.name = "indexer_k_norm_quant_insert",
                .kernel = "indexer_k_norm_quant_insert",
                .make = key_insert,
                .form = 132,
                .tokens = {16384, 65536},
                .copy_target = 0.80,
                .cpu_tokens = 1024});
  to.push_back({.name = "dsa_fused_prologue",
                .kernel = "dsa_fused_prologue",
                .make = prologue,
                .form = 132,
                .tokens = {16384, 65536},
                .copy_target = 0.80,
                .cpu_tokens = 256});
}

}  // namespace kvcts
