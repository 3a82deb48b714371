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

constexpr int most_samples = 9;

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

// A call that is timed beside others: the best of its samples.
struct timed {
  std::function<void()> work;
  int samples = most_samples;
  double longest = 1e30;  // no sample once those before took as many seconds
  double best = 1e30;     // seconds a call
};
// A call of each that is not counted, then samples in turn: a machine that slows down for a while
// slows all of them.
void time_in_turn(const std::vector<timed*>& all) {
  std::vector<double> spent(all.size(), 0.0);
  for (const timed* one : all) one->work();
  for (int i = 0; i < most_samples; ++i) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      timed& one = *all[k];
      if (i >= one.samples || spent[k] > one.longest) continue;
      const double took = sample(one.work);
      spent[k] += std::max(took, 0.01);
      one.best = std::min(one.best, took);
    }
  }
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

// A second candidate's call on buffers of its own.
struct second_candidate {
  bench_problem problem;
  vs_row row;
  std::function<vs_answer()> call;
};

// Ours and the second candidate's call on equal buffers: their bytes.
void compare_bytes(const bench_op& op, const bench_problem& p, const vs_candidate& vs,
                   second_candidate& second) {
  vs_answer& answer = second.row.answer;
  if (!vs.claims(op.kernel)) {
    answer.state = vs_state::not_claimed;
    return;
  }
  second.problem = op.make(op, op.cpu_tokens);
  empty_outputs(p);
  empty_outputs(second.problem);
  second.call = vs.prepared(second.problem.work, nullptr);
  run_cpu(p.work, profile::nvidia, 1);
  answer = second.call();
  if (answer.state == vs_state::measured) second.row.differing = differing(p, second.problem);
}

cpu_bench_row measured(const bench_op& op, bench_function reference, int threads,
                       const vs_candidate* vs) {
  const bench_problem p = op.make(op, op.cpu_tokens);
  const auto half = static_cast<std::size_t>(p.bytes / 2);
  const std::vector<std::byte> from(half, std::byte{1});
  std::vector<std::byte> to(half);
  second_candidate second;
  if (vs != nullptr) compare_bytes(op, p, *vs, second);
  vs_answer& answer = second.row.answer;
  const bool both = vs != nullptr && answer.state == vs_state::measured;

  timed ours{.work = [&] { run_cpu(p.work, profile::nvidia, 1); }};
  timed on_threads{.work = [&] { run_cpu(p.work, profile::nvidia, threads); }};
  timed copy{.work = [&] { std::memcpy(to.data(), from.data(), half); }};
  timed oracle{.work = [&] { reference(p.work, profile::nvidia); }, .samples = 2};
  timed theirs{.work =
                   [&] {
                     if (answer.state == vs_state::measured) answer = second.call();
                   },
               .longest = 5};
  std::vector<timed*> all = {&ours, &copy, &on_threads, &oracle};
  if (both) all.push_back(&theirs);
  time_in_turn(all);

  const auto gbs = [&](double s) { return static_cast<double>(p.bytes) / s / 1e9; };
  cpu_bench_row row;
  row.op = op.name;
  row.size = p.size;
  row.bytes = p.bytes;
  row.threads = threads;
  row.candidate_gbs = gbs(ours.best);
  row.threads_gbs = gbs(on_threads.best);
  row.reference_gbs = gbs(oracle.best);
  row.memcpy_gbs = gbs(copy.best);
  row.ratio = row.candidate_gbs / row.reference_gbs;
  row.share_of_memcpy = row.candidate_gbs / row.memcpy_gbs;
  if (both && answer.state == vs_state::measured) {
    second.row.time_us = theirs.best * 1e6;
    second.row.ratio = theirs.best / ours.best;
    second.row.share_of_copy = gbs(theirs.best) / row.memcpy_gbs;
  }
  if (vs != nullptr) row.vs = std::move(second.row);
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
