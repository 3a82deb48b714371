#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "optimized/bench.h"
#include "optimized/bench/problems.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

constexpr double ratio_target = 8;
constexpr double memcpy_target = 0.60;

// Seconds a call: the best of `samples` measurements of at least 10 ms each, behind a first call
// that is not counted.
double seconds(int samples, const std::function<void()>& work) {
  using clock = std::chrono::steady_clock;
  work();
  double best = 1e30;
  for (int sample = 0; sample < samples; ++sample) {
    const auto start = clock::now();
    int calls = 0;
    double elapsed = 0;
    do {
      work();
      ++calls;
      elapsed = std::chrono::duration<double>(clock::now() - start).count();
    } while (elapsed < 0.01);
    best = std::min(best, elapsed / calls);
  }
  return best;
}

cpu_bench_row measured(const bench_op& op, bench_function reference, int threads) {
  const bench_problem p = op.make(op, op.cpu_tokens);
  const auto gbs = [&](double s) { return static_cast<double>(p.bytes) / s / 1e9; };
  cpu_bench_row row;
  row.op = op.name;
  row.size = p.size;
  row.bytes = p.bytes;
  row.threads = threads;
  row.candidate_gbs = gbs(seconds(9, [&] { run_cpu(p.work, profile::nvidia, 1); }));
  row.threads_gbs = gbs(seconds(9, [&] { run_cpu(p.work, profile::nvidia, threads); }));
  row.reference_gbs = gbs(seconds(2, [&] { reference(p.work, profile::nvidia); }));
  const auto half = static_cast<std::size_t>(p.bytes / 2);
  const std::vector<std::byte> from(half, std::byte{1});
  std::vector<std::byte> to(half);
  row.memcpy_gbs = gbs(seconds(9, [&] { std::memcpy(to.data(), from.data(), half); }));
  row.ratio = row.candidate_gbs / row.reference_gbs;
  row.share_of_memcpy = row.candidate_gbs / row.memcpy_gbs;
  row.moves_only = op.moves_only;
  row.target = op.moves_only ? memcpy_target : ratio_target;
  return row;
}

}  // namespace

std::vector<cpu_bench_row> bench_cpu(const bench_choice& choice, bench_function reference,
                                     int threads) {
  std::vector<cpu_bench_row> rows;
  for (const bench_op& op : bench_ops()) {
    if (!cpu_supports(op.kernel) || (choice.wanted && !choice.wanted(op.kernel))) continue;
    if (choice.progress) choice.progress(op.name);
    rows.push_back(measured(op, reference, threads));
  }
  return rows;
}

}  // namespace kvcts
