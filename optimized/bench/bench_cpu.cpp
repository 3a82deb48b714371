#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "optimized/bench.h"
#include "optimized/bench/problems.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

constexpr double ratio_target = 8;
constexpr double memcpy_target = 0.60;

constexpr int samples = 9;

// Seconds a call, over at least 10 ms.
double sample(const std::function<void()>& work) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  int calls = 0;
  double elapsed = 0;
  do {
    work();
    ++calls;
    elapsed = std::chrono::duration<double>(clock::now() - start).count();
  } while (elapsed < 0.01);
  return elapsed / calls;
}

// Seconds a call: the best of `count` samples, behind a first call that is not counted.
double seconds(int count, const std::function<void()>& work) {
  work();
  double best = 1e30;
  for (int i = 0; i < count; ++i) best = std::min(best, sample(work));
  return best;
}

// What each of two calls wrote to what only a kernel writes is told from what stood there.
constexpr std::byte canary{0xCC};

void empty_outputs(const bench_problem& p) {
  for (const std::string& name : p.outputs) {
    const tensor_view& v = p.work.tensor(name);
    std::fill(v.storage, v.storage + v.storage_bytes, canary);
  }
}

std::vector<std::string> differing(const bench_problem& a, const bench_problem& b) {
  std::vector<std::string> names;
  for (const auto& [name, v] : a.work.tensors) {
    if (std::memcmp(v.storage, b.work.tensor(name).storage, v.storage_bytes) != 0) {
      names.push_back(name);
    }
  }
  return names;
}

struct compared {
  double seconds = 0;  // of ours
  vs_row vs;
};

// Ours and the second candidate's call on equal buffers: their bytes, then their times, in turn.
compared compare(const bench_op& op, const bench_problem& p, const vs_candidate& vs) {
  constexpr double longest = 5;  // seconds for a candidate that is slow
  const auto ours = [&] { run_cpu(p.work, profile::nvidia, 1); };
  compared to;
  vs_answer& answer = to.vs.answer;
  if (!vs.claims(op.kernel)) {
    answer.state = vs_state::not_claimed;
    to.seconds = seconds(samples, ours);
    return to;
  }
  const bench_problem theirs = op.make(op, op.cpu_tokens);
  empty_outputs(p);
  empty_outputs(theirs);
  const std::function<vs_answer()> call = vs.prepared(theirs.work, nullptr);
  ours();
  answer = call();
  if (answer.state == vs_state::measured) to.vs.differing = differing(p, theirs);
  const auto again = [&] {
    if (answer.state == vs_state::measured) answer = call();
  };
  to.seconds = 1e30;
  double best = 1e30;
  double spent = 0;
  for (int i = 0; i < samples; ++i) {
    to.seconds = std::min(to.seconds, sample(ours));
    if (answer.state != vs_state::measured || spent > longest) continue;
    const double took = sample(again);
    spent += std::max(took, 0.01);
    best = std::min(best, took);
  }
  if (answer.state == vs_state::measured) {
    to.vs.time_us = best * 1e6;
    to.vs.ratio = best / to.seconds;
  }
  return to;
}

cpu_bench_row measured(const bench_op& op, bench_function reference, int threads,
                       const vs_candidate* vs) {
  const bench_problem p = op.make(op, op.cpu_tokens);
  const auto gbs = [&](double s) { return static_cast<double>(p.bytes) / s / 1e9; };
  cpu_bench_row row;
  row.op = op.name;
  row.size = p.size;
  row.bytes = p.bytes;
  row.threads = threads;
  if (vs != nullptr) {
    compared both = compare(op, p, *vs);
    row.candidate_gbs = gbs(both.seconds);
    row.vs = std::move(both.vs);
  } else {
    row.candidate_gbs = gbs(seconds(samples, [&] { run_cpu(p.work, profile::nvidia, 1); }));
  }
  row.threads_gbs = gbs(seconds(samples, [&] { run_cpu(p.work, profile::nvidia, threads); }));
  row.reference_gbs = gbs(seconds(2, [&] { reference(p.work, profile::nvidia); }));
  const auto half = static_cast<std::size_t>(p.bytes / 2);
  const std::vector<std::byte> from(half, std::byte{1});
  std::vector<std::byte> to(half);
  row.memcpy_gbs = gbs(seconds(samples, [&] { std::memcpy(to.data(), from.data(), half); }));
  row.ratio = row.candidate_gbs / row.reference_gbs;
  row.share_of_memcpy = row.candidate_gbs / row.memcpy_gbs;
  if (row.vs && row.vs->time_us > 0) {
    row.vs->share_of_copy = gbs(row.vs->time_us / 1e6) / row.memcpy_gbs;
  }
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
    rows.push_back(measured(op, reference, threads, choice.vs));
  }
  return rows;
}

}  // namespace kvcts
