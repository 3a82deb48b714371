// kvcts bench: speeds as ratios within one run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "conformance/candidate/candidate.h"
#include "conformance/cases/build.h"
#include "conformance/cli/commands.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "reference/kernels/kernels.h"

namespace kvcts {
namespace {

struct problem {
  std::string label;
  test_case inputs;
  std::vector<buffer> results;
  std::uint64_t input_bytes = 0, moved_bytes = 0;

  call as_call() { return make_call(inputs.kernel, inputs.attributes, inputs.inputs, results); }
};

// Ordinary numbers: a few rows' worth of blocks, repeated.
void fill_rows(buffer& b, const block_rules& rules) {
  constexpr std::int64_t block = 32, blocks = 4096;
  draw from(1);
  std::vector<std::uint16_t> values(block * blocks);
  for (std::int64_t i = 0; i < blocks; ++i) {
    fill_block(from, content::ordinary, rules, i, values.data() + i * block, block);
  }
  for (std::size_t at = 0; at < b.bytes.size(); at += values.size() * 2) {
    std::memcpy(b.bytes.data() + at, values.data(),
                std::min(values.size() * 2, b.bytes.size() - at));
  }
}

problem make_query(std::int64_t tokens, std::int64_t heads) {
  problem p;
  p.label = fmt::format("mxfp4_q_quant T={} H={}", tokens, heads);
  p.inputs.kernel = "mxfp4_q_quant";
  p.inputs.attributes["weight_scale"] = 0.0884;
  p.inputs.attributes["padded_num_heads"] = heads;
  p.inputs.inputs.push_back(make_buffer("index_q", dtype::bf16, dense({tokens, heads, 128})));
  p.inputs.inputs.push_back(make_buffer("index_weights", dtype::bf16, dense({tokens, heads})));
  for (buffer& b : p.inputs.inputs) fill_rows(b, e2m1_rules());
  p.input_bytes = static_cast<std::uint64_t>(tokens * heads * (256 + 2));
  p.moved_bytes = p.input_bytes + static_cast<std::uint64_t>(tokens * heads * (64 + 4 + 4));
  return p;
}

problem make_insert(std::int64_t tokens, std::int64_t record) {
  constexpr std::int64_t block_size = 64;
  problem p;
  p.label = fmt::format("quantize_and_insert_k_cache {} tokens, record {}", tokens, record);
  p.inputs.kernel = "quantize_and_insert_k_cache";
  p.inputs.attributes["block_size"] = block_size;
  p.inputs.attributes["use_fnuz"] = std::int64_t{0};
  p.inputs.attributes["bytes_per_token"] = record;
  p.inputs.inputs.push_back(make_buffer("k", dtype::bf16, dense({tokens, 512})));
  fill_rows(p.inputs.inputs.back(), e4m3_rules(fp8_format::e4m3fn));
  const std::int64_t pages = tokens / block_size;
  p.inputs.inputs.push_back(make_buffer("k_cache", dtype::u8, dense({pages, block_size, record})));
  p.inputs.inputs.push_back(make_buffer("slot_mapping", dtype::i64, dense({tokens})));
  // Pages in another order than tokens, as a cache hands them out.
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t page = (t / block_size * 37) % pages;
    store(p.inputs.inputs.back().view().element(t), page * block_size + t % block_size);
  }
  p.input_bytes = static_cast<std::uint64_t>(tokens * (1024 + 8));
  p.moved_bytes = p.input_bytes + static_cast<std::uint64_t>(tokens * record);
  return p;
}

std::vector<problem> make_problems(const kernel_filter& kernels, std::int64_t query_tokens,
                                   std::int64_t insert_tokens) {
  std::vector<problem> all;
  if (kernels.matches("mxfp4_q_quant")) all.push_back(make_query(query_tokens, 32));
  if (kernels.matches("quantize_and_insert_k_cache")) {
    all.push_back(make_insert(insert_tokens, 584));
    all.push_back(make_insert(insert_tokens, 528));
  }
  for (problem& p : all) {
    p.results =
        initial_results(contract_of(p.inputs.kernel), p.inputs.attributes, p.inputs.inputs, canary);
  }
  return all;
}

// Seconds of the fastest call, of calls that take at least `least` together.
double fastest(double least, const std::function<void()>& work) {
  double best = 0, spent = 0;
  for (int calls = 0; calls < 2 || spent < least; ++calls) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = calls == 0 ? s : std::min(best, s);
    spent += s;
    if (calls == 0 && s > 4 * least) break;  // one long call tells enough
  }
  return best;
}

double gigabytes(std::uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e9;
}

void bench_cpu(const bench_arguments& arguments, const kernel_filter& kernels) {
  const int threads = arguments.threads > 0
                          ? arguments.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::unique_ptr<candidate> reference = make_candidate("reference", 1);
  const std::unique_ptr<candidate> one = make_candidate(arguments.candidate, 1);
  const std::unique_ptr<candidate> many = make_candidate(arguments.candidate, threads);
  fmt::print("candidate {} ({}); GB/s of input; the copy moves as many bytes as the kernel\n",
             one->name(), one->version());
  // Small enough for the reference, same data for both.
  for (problem& p : make_problems(kernels, 1024, 4096)) {
    const call c = p.as_call();
    const double slow = fastest(arguments.seconds, [&] { reference->run(c, profile::nvidia); });
    const std::vector<buffer> expected = p.results;
    const double quick = fastest(arguments.seconds, [&] { one->run(c, profile::nvidia); });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].bytes != p.results[i].bytes) {
        throw std::runtime_error(p.label + ": the candidate's bytes are not the reference's");
      }
    }
    fmt::print("{}: reference {:.4f}, {} {:.3f} (1 thread each): {:.1f} times the reference\n",
               p.label, gigabytes(p.input_bytes, slow), one->name(),
               gigabytes(p.input_bytes, quick), slow / quick);
  }
  for (problem& p : make_problems(kernels, 16384, 65536)) {
    const call c = p.as_call();
    const double alone = fastest(arguments.seconds, [&] { one->run(c, profile::nvidia); });
    const double together = fastest(arguments.seconds, [&] { many->run(c, profile::nvidia); });
    std::vector<std::byte> from(p.moved_bytes / 2, canary), to(p.moved_bytes / 2);
    const double copy =
        fastest(arguments.seconds, [&] { std::memcpy(to.data(), from.data(), from.size()); });
    fmt::print(
        "{}: 1 thread {:.3f}, {} threads {:.3f} ({:.2f} times one thread); {:.2f} of a copy by one "
        "thread\n",
        p.label, gigabytes(p.input_bytes, alone), threads, gigabytes(p.input_bytes, together),
        alone / together, copy / together);
  }
}

}  // namespace

int bench_command(const bench_arguments& arguments) {
  const kernel_filter kernels(arguments.kernels);
  make_candidate(arguments.candidate, 1);
  if (arguments.candidate == "cuda") {
    throw input_error("bench of cuda: not yet");
  }
  bench_cpu(arguments, kernels);
  return 0;
}

}  // namespace kvcts
