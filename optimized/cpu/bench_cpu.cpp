#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "optimized/bench.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

std::uint32_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((x ^ (x >> 31)) >> 32);
}

// bf16 of both signs with magnitudes from 2^-8 to 8.
std::vector<std::byte> bf16_values(std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * 2);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t r = mixed(static_cast<std::uint64_t>(i));
    const std::uint32_t exponent = 119 + (r >> 8) % 11;
    const std::uint32_t value = (r >> 31) << 15 | exponent << 7 | (r & 0x7F);
    store(bytes.data() + 2 * i, static_cast<std::uint16_t>(value));
  }
  return bytes;
}

// A call that owns its buffers.
struct problem {
  std::string op;
  call work;
  std::vector<std::vector<std::byte>> buffers;
  std::int64_t input_bytes = 0;

  void add(const char* name, dtype type, std::vector<std::int64_t> shape,
           std::vector<std::byte> bytes) {
    buffers.push_back(std::move(bytes));
    tensor_view v;
    v.storage = buffers.back().data();
    v.storage_bytes = buffers.back().size();
    v.type = type;
    v.at = dense(std::move(shape));
    work.tensors[name] = v;
  }
};

problem query(std::int64_t tokens, std::int64_t heads) {
  problem p;
  p.op = "mxfp4_q_quant";
  p.work.kernel = p.op;
  p.input_bytes = tokens * heads * (256 + 2);
  p.add("index_q", dtype::bf16, {tokens, heads, 128}, bf16_values(tokens * heads * 128));
  p.add("index_weights", dtype::bf16, {tokens, heads}, bf16_values(tokens * heads));
  const auto rows = static_cast<std::size_t>(tokens * heads);
  p.add("q_packed", dtype::u8, {tokens, heads, 64}, std::vector<std::byte>(rows * 64));
  p.add("q_scale", dtype::i32, {tokens, heads}, std::vector<std::byte>(rows * 4));
  p.add("weights", dtype::f32, {tokens, heads}, std::vector<std::byte>(rows * 4));
  p.work.attributes["weight_scale"] = 0.08838834764831845;
  p.work.attributes["padded_num_heads"] = heads;
  return p;
}

problem insert(std::int64_t tokens, std::int64_t record) {
  constexpr std::int64_t block = 64;
  problem p;
  p.op = "quantize_and_insert_k_cache " + std::to_string(record);
  p.work.kernel = "quantize_and_insert_k_cache";
  p.input_bytes = tokens * (1024 + 8);
  p.add("k", dtype::bf16, {tokens, 512}, bf16_values(tokens * 512));
  p.add("k_cache", dtype::u8, {tokens / block, block, record},
        std::vector<std::byte>(static_cast<std::size_t>(tokens * record)));
  std::vector<std::byte> slots(static_cast<std::size_t>(tokens) * 8);
  // An odd factor modulo a power of two: every slot once, in no order.
  for (std::int64_t t = 0; t < tokens; ++t) store(slots.data() + 8 * t, t * 40503 % tokens);
  p.add("slot_mapping", dtype::i64, {tokens}, std::move(slots));
  p.work.attributes["block_size"] = block;
  p.work.attributes["bytes_per_token"] = record;
  p.work.attributes["use_fnuz"] = std::int64_t{0};
  return p;
}

// Seconds a call, the best of several measurements of at least 50 ms.
double seconds(const std::function<void()>& work) {
  using clock = std::chrono::steady_clock;
  work();
  double best = 1e30;
  for (int sample = 0; sample < 5; ++sample) {
    const auto start = clock::now();
    int calls = 0;
    double elapsed = 0;
    do {
      work();
      ++calls;
      elapsed = std::chrono::duration<double>(clock::now() - start).count();
    } while (elapsed < 0.05);
    best = std::min(best, elapsed / calls);
  }
  return best;
}

cpu_bench_row measured(const problem& p, bench_function reference, int threads) {
  const auto gbs = [&](double s) { return static_cast<double>(p.input_bytes) / s / 1e9; };
  cpu_bench_row row;
  row.op = p.op;
  row.threads = threads;
  row.candidate_gbs = gbs(seconds([&] { run_cpu(p.work, profile::nvidia, 1); }));
  row.threads_gbs = gbs(seconds([&] { run_cpu(p.work, profile::nvidia, threads); }));
  row.reference_gbs = gbs(seconds([&] { reference(p.work, profile::nvidia); }));
  const std::vector<std::byte>& input = p.buffers.front();
  std::vector<std::byte> copy(input.size());
  const double copied = seconds([&] { std::memcpy(copy.data(), input.data(), input.size()); });
  row.memcpy_gbs = static_cast<double>(input.size()) / copied / 1e9;
  row.ratio = row.candidate_gbs / row.reference_gbs;
  return row;
}

}  // namespace

std::vector<cpu_bench_row> bench_cpu(bench_function reference, int threads) {
  std::vector<cpu_bench_row> rows;
  const problem problems[] = {query(256, 32), insert(2048, 584), insert(2048, 528)};
  for (const problem& p : problems) rows.push_back(measured(p, reference, threads));
  return rows;
}

}  // namespace kvcts
