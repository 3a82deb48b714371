// Problems of the index builders. Inputs count whole, block tables too.
#include <algorithm>

#include "optimized/bench/build.h"

namespace kvcts {
namespace {

constexpr std::int64_t topk = 512;
constexpr std::int64_t window = 128;
constexpr std::int64_t ratio = 4;       // tokens a compressed entry
constexpr std::int64_t context = 4096;  // tokens of a request before this chunk
constexpr std::int64_t longest = context + bench_request;
constexpr std::int64_t entries = longest / ratio;  // compressed ones of the longest request

std::string size_text(std::int64_t tokens) { return tokens_text(tokens) + " K=512"; }

std::vector<std::int32_t> all(std::int64_t count, std::int64_t value) {
  return std::vector<std::int32_t>(static_cast<std::size_t>(count),
                                   static_cast<std::int32_t>(value));
}

// Tokens of each request, the queries included.
std::vector<std::int32_t> lengths(const std::vector<std::int32_t>& starts) {
  std::vector<std::int32_t> of;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    of.push_back(static_cast<std::int32_t>(context) + starts[r + 1] - starts[r]);
  }
  return of;
}

bench_problem global(const bench_op& op, std::int64_t tokens) {
  const std::int64_t requests = requests_for(tokens);
  constexpr std::int64_t columns = entries / bench_page;
  problem_builder b(op.kernel, size_text(tokens));
  b.numbers("topk_indices", dtype::i32, {tokens, topk}, drawn_below(entries, tokens * topk));
  b.numbers("token_to_req_indices", dtype::i32, {tokens}, request_of_tokens(tokens));
  b.block_table("block_table", requests, columns);
  b.numbers("is_valid_token", dtype::boolean, {tokens},
            std::vector<std::uint8_t>(static_cast<std::size_t>(tokens), 1));
  b.output("global_topk_indices", dtype::i32, {tokens, topk});
  b.output("topk_lens", dtype::i32, {tokens});
  b.attribute("block_size", bench_page);
  return b.done(tokens * (topk * 4 + 4 + 1 + topk * 4 + 4) + requests * columns * 4);
}

bench_problem combine(const bench_op& op, std::int64_t tokens) {
  const std::int64_t requests = requests_for(tokens);
  const std::vector<std::int32_t> starts = starts_of_requests(tokens);
  std::vector<std::int32_t> gathered;  // what the windows of the chunk reach
  for (const std::int32_t length : lengths(starts)) {
    gathered.push_back(length - static_cast<std::int32_t>(context - (window - 1)));
  }
  problem_builder b(op.kernel, size_text(tokens));
  b.numbers("topk_indices", dtype::i32, {tokens, topk}, drawn_below(entries, tokens * topk));
  b.numbers("query_start_loc", dtype::i32, {requests + 1}, starts);
  b.numbers("seq_lens", dtype::i32, {requests}, lengths(starts));
  b.numbers("gather_lens", dtype::i32, {requests}, gathered);
  b.output("combined_indices", dtype::i32, {tokens, topk + window});
  b.output("combined_lens", dtype::i32, {tokens});
  b.attribute("window_size", window);
  b.attribute("compress_ratio", ratio);
  b.attribute("topk", topk);
  b.attribute("M", entries + bench_request + window);
  b.attribute("N", entries);
  return b.done(tokens * (topk * 4 + (topk + window) * 4 + 4) + (requests + 1) * 4 +
                requests * (4 + 4));
}

// 256 decode tokens at most, a request each, then prompts.
bench_problem mixed(const bench_op& op, std::int64_t tokens) {
  const std::int64_t decode = std::min<std::int64_t>(tokens, 256);
  const std::int64_t prefill = tokens - decode;
  const std::int64_t requests = decode + requests_for(prefill);
  constexpr std::int64_t window_columns = longest / bench_page;
  constexpr std::int64_t columns = entries / bench_page;
  std::vector<std::int32_t> starts, request_of;
  for (std::int64_t t = 0; t < decode; ++t) {
    starts.push_back(static_cast<std::int32_t>(t));
    request_of.push_back(static_cast<std::int32_t>(t));
  }
  for (const std::int32_t start : starts_of_requests(prefill)) {
    starts.push_back(static_cast<std::int32_t>(decode) + start);
  }
  for (const std::int32_t request : request_of_tokens(prefill)) {
    request_of.push_back(static_cast<std::int32_t>(decode) + request);
  }
  problem_builder b(op.kernel, size_text(tokens));
  b.numbers("decode_swa_indices", dtype::i32, {decode, window},
            drawn_below(requests * longest, decode * window));
  b.numbers("decode_compressed_indices", dtype::i32, {decode, topk},
            drawn_below(entries, decode * topk));
  b.numbers("prefill_topk_indices", dtype::i32, {prefill, topk},
            drawn_below(entries, prefill * topk));
  b.numbers("query_start_loc", dtype::i32, {requests + 1}, starts);
  b.numbers("seq_lens", dtype::i32, {requests}, lengths(starts));
  b.numbers("token_to_req_indices", dtype::i32, {tokens}, request_of);
  b.block_table("swa_block_table", requests, window_columns);
  b.block_table("compressed_block_table", requests, columns);
  b.numbers("decode_is_valid_token", dtype::boolean, {decode},
            std::vector<std::uint8_t>(static_cast<std::size_t>(decode), 1));
  b.numbers("replay_start", dtype::i32, {requests}, all(requests, 0));
  b.output("sparse_indices", dtype::i32, {tokens, window + topk});
  b.output("sparse_topk_lens", dtype::i32, {tokens});
  b.attribute("swa_block_size", bench_page);
  b.attribute("compressed_block_size", bench_page);
  b.attribute("window_size", window);
  b.attribute("compress_ratio", ratio);
  b.attribute("topk", topk);
  b.attribute("decode_compressed_indices_are_local", std::int64_t{1});
  return b.done(decode * (window * 4 + topk * 4 + 1) + prefill * topk * 4 + tokens * 4 +
                (requests + 1) * 4 + requests * (4 + 4 + window_columns * 4 + columns * 4) +
                tokens * ((window + topk) * 4 + 4));
}

bench_op builder(const char* kernel, bench_problem (*make)(const bench_op&, std::int64_t)) {
  return {.name = kernel,
          .kernel = kernel,
          .make = make,
          .tokens = {16384, 65536},
          .copy_target = 0.80,
          .cpu_tokens = 6144,
          .moves_only = true};
}

}  // namespace

void add_index_ops(std::vector<bench_op>& to) {
  to.push_back(builder("compute_global_topk_indices_and_lens", global));
  to.push_back(builder("combine_topk_swa_indices", combine));
  to.push_back(builder("build_flashinfer_mixed_sparse_indices", mixed));
}

}  // namespace kvcts
