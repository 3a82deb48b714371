// Problems of the DeepSeek V4.1 kernels, the index builders apart.
#include <algorithm>

#include "optimized/bench/build.h"

namespace kvcts {
namespace {

// Bytes of the cos/sin rows that tokens read.
std::int64_t cos_sin_bytes(std::int64_t tokens) { return std::min(tokens, bench_request) * 64 * 4; }

// Form: bytes of the record.
bench_problem insert(const bench_op& op, std::int64_t tokens) {
  problem_builder b(op.kernel, tokens_text(tokens));
  b.values("k", dtype::bf16, {tokens, 512});
  b.output("k_cache", dtype::u8, {pages_for(tokens), bench_page, op.form});
  b.slots("slot_mapping", tokens);
  b.attribute("block_size", bench_page);
  b.attribute("bytes_per_token", op.form);
  b.attribute("use_fnuz", std::int64_t{0});
  return b.done(tokens * (1024 + 8 + op.form));
}

// Requests of equal length, all of it gathered. Form: bytes of the record.
bench_problem gather(const bench_op& op, std::int64_t tokens) {
  const std::int64_t requests = std::max<std::int64_t>(tokens / bench_request, 1);
  const std::int64_t length = tokens / requests;
  const std::int64_t columns = pages_for(length);
  problem_builder b(op.kernel, std::to_string(requests) + " x " + std::to_string(length));
  b.output("out", dtype::bf16, {requests, length, 512});
  b.cache("k_cache", requests * columns, op.form);
  b.numbers("seq_lens", dtype::i32, {requests},
            std::vector<std::int32_t>(static_cast<std::size_t>(requests),
                                      static_cast<std::int32_t>(length)));
  b.block_table("block_table", requests, columns);
  b.attribute("block_size", bench_page);
  b.attribute("offset", std::int64_t{0});
  b.attribute("use_fnuz", std::int64_t{0});
  return b.done(requests * (length * (1024 + op.form) + 4 + columns * 4));
}

// Form: 1 is MXFP4.
bench_problem rope_query(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t heads = 64;
  const bool fp4 = op.form == 1;
  problem_builder b(op.kernel, tokens_text(tokens) + " H=64");
  b.positions(tokens);
  b.values("index_q", dtype::bf16, {tokens, heads, 128});
  b.cos_sin("index_q_cos_sin_cache", tokens);
  b.values("index_weights", dtype::bf16, {tokens, heads});
  if (fp4) {
    b.output("q_packed", dtype::e2m1x2, {tokens, heads, 64});
    b.output("q_scale", dtype::ue8m0, {tokens, heads, 4});
  } else {
    b.output("q_quant", dtype::f8e4m3fn, {tokens, heads, 128});
  }
  b.output("weights_out", dtype::f32, {tokens, heads});
  b.attribute("index_weights_softmax_scale", 0.08838834764831845);
  b.attribute("index_weights_head_scale", 0.125);
  b.attribute("use_fp4", op.form);
  b.attribute("weights_out_dtype", "f32");
  b.attribute("fp8_format", "e4m3fn");
  const std::int64_t head = 256 + 2 + (fp4 ? 64 + 4 : 128) + 4;
  return b.done(cos_sin_bytes(tokens) + tokens * (8 + heads * head));
}

// Form: 1 packs the scales.
bench_problem inverse_rope(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t groups = 8;
  constexpr std::int64_t heads = 8;  // a group
  problem_builder b(op.kernel, tokens_text(tokens) + " 8 x 8 heads");
  b.values("o", dtype::bf16, {tokens, groups * heads, 512});
  b.positions(tokens);
  b.cos_sin("cos_sin_cache", tokens);
  b.output("output", dtype::f8e4m3fn, {groups, tokens, heads * 512});
  const std::int64_t inner = heads * 4 / (op.form == 1 ? 4 : 1);
  const std::int64_t scales = groups * inner * ((tokens + 3) / 4 * 4);
  b.output("scales", op.form == 1 ? dtype::i32 : dtype::f32, {scales});
  b.attribute("n_groups", groups);
  b.attribute("heads_per_group", heads);
  b.attribute("nope_dim", std::int64_t{448});
  b.attribute("rope_dim", std::int64_t{64});
  b.attribute("quant_group_size", std::int64_t{128});
  b.attribute("tma_aligned_scales", op.form);
  b.attribute("quantize", std::int64_t{1});
  return b.done(cos_sin_bytes(tokens) + scales * 4 +
                tokens * (8 + groups * heads * (512 * 2 + 512)));
}

enum key_form : std::int64_t { fp8_keys, mxfp4_keys, tiled_keys, tiled_keys_at_random };

// Tiled keys come page by page, as of a prefill, or at random slots as the others.
bench_problem key_store(const bench_op& op, std::int64_t tokens) {
  const bool tiled = op.form == tiled_keys || op.form == tiled_keys_at_random;
  const std::int64_t record = op.form == mxfp4_keys ? 68 : 132;
  problem_builder b(op.kernel, tokens_text(tokens));
  b.values("k_pre", dtype::bf16, {tokens, 128});
  b.positions(tokens);
  b.cos_sin("cos_sin_cache", tokens);
  b.values("rms_norm_weight", dtype::bf16, {128});
  b.output("k_cache", dtype::u8, {pages_for(tokens), bench_page, record});
  if (op.form == tiled_keys) {
    b.slots_by_page("kv_slot_mapping", tokens);
  } else {
    b.slots("kv_slot_mapping", tokens);
  }
  b.attribute("rms_norm_eps", 1e-6);
  b.attribute("compress_ratio", std::int64_t{1});
  b.attribute("use_fp4_cache", std::int64_t{record == 68 ? 1 : 0});
  b.attribute("shuffle", std::int64_t{tiled ? 1 : 0});
  return b.done(cos_sin_bytes(tokens) + 128 * 2 + tokens * (256 + 8 + 8 + record));
}

// Form: the ratio. At ratio 2 requests are whole prompts; a few tokens are requests of one token
// each that end their group, as in decoding, so that the earlier row comes from the ring.
bench_problem compress(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t capacity = 8;
  constexpr std::int64_t decode = 64;
  const std::int64_t ratio = op.form;
  const std::int64_t score_bytes = ratio * 2048;
  problem_builder b(op.kernel, tokens_text(tokens));
  b.values("kv_score", dtype::f32, {tokens, 512 * ratio});
  b.values("rms_norm_weight", dtype::bf16, {512});
  b.output("latent_out", dtype::bf16, {tokens, 512});
  b.attribute("rms_norm_eps", 1e-6);
  b.attribute("compress_ratio", ratio);
  if (ratio == 1) {
    b.positions(tokens);
    b.slots("slot_mapping", tokens);
    return b.done(512 * 2 + tokens * (score_bytes + 8 + 8 + 1024));
  }
  const bool decodes = tokens <= decode;
  const std::int64_t length = decodes ? 1 : bench_request;
  const std::int64_t requests = (tokens + length - 1) / length;
  std::vector<std::int64_t> positions, slots;
  std::vector<std::int32_t> request_of, starts;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t request = t / length;
    const std::int64_t position = decodes ? 2 * t + 1 : t % length;
    positions.push_back(position);
    slots.push_back(request * capacity + position % capacity);
    request_of.push_back(static_cast<std::int32_t>(request));
    if (t % length == 0) starts.push_back(static_cast<std::int32_t>(t));
  }
  starts.push_back(static_cast<std::int32_t>(tokens));
  b.numbers("positions", dtype::i64, {tokens}, positions);
  b.numbers("slot_mapping", dtype::i64, {tokens}, slots);
  b.numbers("token_to_req_indices", dtype::i32, {tokens}, request_of);
  b.numbers("query_start_loc", dtype::i32, {requests + 1}, starts);
  b.values("state_cache", dtype::f32, {requests, capacity, 1024});
  std::int64_t kept = 0;  // rows that enter rings
  for (std::int64_t r = 0; r < requests; ++r) {
    kept += std::min(capacity, std::min(length, tokens - r * length));
  }
  std::int64_t latents = 0;
  for (const std::int64_t p : positions) latents += p % 2;
  return b.done(512 * 2 + tokens * (score_bytes + 8 + 8 + 4) + (requests + 1) * 4 + latents * 1024 +
                kept * 4096 + (decodes ? tokens * 4096 : 0));
}

// Form: the bytes of the record: 584, 528, 288, of plain rows 1024 (bf16) or 512 (fp8).
bench_problem rope_insert(const bench_op& op, std::int64_t tokens) {
  problem_builder b(op.kernel, tokens_text(tokens));
  const bool rows = op.form == 1024 || op.form == 512;
  const dtype type = op.form == 1024 ? dtype::bf16 : op.form == 512 ? dtype::f8e4m3fn : dtype::u8;
  b.values("latent", dtype::bf16, {tokens, 512});
  b.positions(tokens);
  b.cos_sin("cos_sin_cache", tokens);
  b.output("kv_cache", type, {pages_for(tokens), bench_page, rows ? 512 : op.form});
  b.slots("slot_mapping", tokens);
  if (op.form == 512) b.numbers("fp8_scale", dtype::f32, {1}, std::vector<float>{0.5f});
  b.attribute("compress_ratio", std::int64_t{1});
  b.attribute("record", op.form == 1024  ? "bf16"
                        : op.form == 512 ? "fp8"
                        : op.form == 584 ? "v4"
                        : op.form == 528 ? "v41_mxfp8"
                                         : "v41_nvfp4");
  return b.done(cos_sin_bytes(tokens) + (op.form == 512 ? 4 : 0) +
                tokens * (1024 + 8 + 8 + op.form));
}

// Form: 0 is op q on bf16 rows of 1536, 1 is o on E4M3 rows of 1024, 2 is o_chunk on rows of 1024
// scales.
bench_problem layout(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t head_dim = 512;
  const bool chunks = op.form == 2;
  const std::int64_t rows_of_head = chunks ? head_dim / 32 : head_dim;
  const std::int64_t heads = op.form == 0 ? std::max<std::int64_t>(tokens / head_dim, 1) : 8;
  const std::int64_t unit = heads * rows_of_head;
  const std::int64_t rows = std::max<std::int64_t>(tokens / unit, 1) * unit;
  const std::int64_t columns = op.form == 0 ? 1536 : 1024;
  const dtype type = op.form == 0 ? dtype::bf16 : chunks ? dtype::u8 : dtype::f8e4m3fn;
  const std::int64_t bytes = rows * columns * (op.form == 0 ? 2 : 1);
  problem_builder b(op.kernel, std::to_string(rows) + " x " + std::to_string(columns));
  if (op.form == 0) {
    b.values("x", type, {rows, columns});
  } else {
    b.bytes("x", type, {rows, columns});
  }
  b.output("y", type, {rows, columns});
  b.attribute("op", op.form == 0 ? "q" : chunks ? "o_chunk" : "o");
  b.attribute("heads", heads);
  b.attribute("head_dim", head_dim);
  return b.done(2 * bytes);
}

bench_problem row_norms(const bench_op& op, std::int64_t tokens) {
  constexpr std::int64_t query_dims = 1536;
  problem_builder b(op.kernel, tokens_text(tokens) + " Q=1536");
  const std::int64_t scales = (tokens + 127) / 128 * 128 * (query_dims / 32);
  b.values("qr", dtype::bf16, {tokens, query_dims});
  b.values("kv", dtype::bf16, {tokens, 512});
  b.values("q_weight", dtype::bf16, {query_dims});
  b.values("kv_weight", dtype::bf16, {512});
  b.output("q_quant", dtype::f8e4m3fn, {tokens, query_dims});
  b.output("q_scales", dtype::ue8m0, {scales});
  b.output("kv_out", dtype::bf16, {tokens, 512});
  b.attribute("eps", 1e-6);
  return b.done((query_dims + 512) * 2 + scales +
                tokens * (query_dims * 2 + 1024 + query_dims + 1024));
}

// The forms of one kernel.
struct form_name {
  const char* text;
  std::int64_t form;
};
void add_forms(std::vector<bench_op>& to, const bench_op& common,
               const std::vector<form_name>& forms) {
  for (const form_name& f : forms) {
    bench_op op = common;
    op.name = common.kernel + " " + f.text;
    op.form = f.form;
    to.push_back(op);
  }
}

}  // namespace

void add_deepseek_ops(std::vector<bench_op>& to) {
  add_forms(to,
            {.kernel = "quantize_and_insert_k_cache",
             .make = insert,
             .tokens = {65536},
             .copy_target = 0.85,
             .cpu_tokens = 2048},
            {{"584", 584}, {"528", 528}});
  add_forms(to,
            {.kernel = "dequantize_and_gather_k_cache",
             .make = gather,
             .tokens = {65536},
             .copy_target = 0.85,
             .cpu_tokens = 16384,
             .moves_only = true},
            {{"584", 584}, {"528", 528}, {"288", 288}});
  add_forms(to,
            {.kernel = "fused_indexer_q_rope_quant",
             .make = rope_query,
             .tokens = {16384},
             .copy_target = 0.90,
             .cpu_tokens = 128},
            {{"fp8", 0}, {"mxfp4", 1}});
  add_forms(to,
            {.kernel = "fused_inv_rope_fp8_quant",
             .make = inverse_rope,
             .tokens = {8192},
             .copy_target = 0.90,
             .cpu_tokens = 32},
            {{"f32 scales", 0}, {"packed scales", 1}});
  add_forms(to,
            {.kernel = "indexer_k_norm_rope_store",
             .make = key_store,
             .tokens = {16384, 65536},
             .copy_target = 0.80,
             .cpu_tokens = 4096},
            {{"fp8", fp8_keys}, {"fp8 tiled", tiled_keys}, {"mxfp4", mxfp4_keys}});
  // Two tokens share each sector of a tile: at random slots no kernel comes near a copy.
  to.push_back({.name = "indexer_k_norm_rope_store fp8 tiled, random",
                .kernel = "indexer_k_norm_rope_store",
                .make = key_store,
                .form = tiled_keys_at_random,
                .tokens = {16384, 65536},
                .cpu_tokens = 4096,
                .decodes = false});
  add_forms(to,
            {.kernel = "fused_save_compress_norm",
             .make = compress,
             .tokens = {16384, 65536},
             .copy_target = 0.80,
             .cpu_tokens = 1024},
            {{"ratio 1", 1}, {"ratio 2", 2}});
  add_forms(to,
            {.kernel = "rope_quant_insert",
             .make = rope_insert,
             .tokens = {16384, 65536},
             .copy_target = 0.80,
             .cpu_tokens = 2048},
            {{"v4", 584}, {"v41_mxfp8", 528}, {"v41_nvfp4", 288}, {"bf16", 1024}, {"fp8", 512}});
  add_forms(to,
            {.kernel = "fused_layout",
             .make = layout,
             .tokens = {16384, 65536},
             .copy_target = 0.80,
             .cpu_tokens = 16384,
             .moves_only = true,
             .decodes = false},
            {{"q", 0}, {"o", 1}, {"o_chunk", 2}});
  to.push_back({.name = "fused_q_kv_rmsnorm_quant",
                .kernel = "fused_q_kv_rmsnorm_quant",
                .make = row_norms,
                .tokens = {16384, 65536},
                .copy_target = 0.80,
                .cpu_tokens = 512});
}

}  // namespace kvcts
