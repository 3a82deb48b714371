#include "conformance/faults/diagnosis.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>

#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"

namespace kvcts {
namespace {

using steady = std::chrono::steady_clock;

// Bytes in which a call or a variant leaves the expected ones.
struct overlap {
  std::uint64_t explained = 0;  // differ, and the variant wrote them as the candidate did
  std::uint64_t either = 0;     // differ in the call or in the variant
  bool complete() const { return explained == either; }
  double share() const {
    return either == 0 ? 0 : static_cast<double>(explained) / static_cast<double>(either);
  }
};

std::vector<byte_range> ranges_of(const buffer& a, const buffer& b, const buffer& c) {
  if (!a.is_sparse()) return {{0, a.bytes.size()}};
  return united(united(a.sparse.written(), b.sparse.written()), c.sparse.written());
}

overlap overlap_of(const observed_call& call, const std::vector<buffer>& variant) {
  overlap found;
  for (std::size_t i = 0; i < call.expected.size(); ++i) {
    const buffer& e = call.expected[i];
    const buffer& v = *find_buffer(variant, e.name);
    for (const byte_range& r : ranges_of(e, call.got[i], v)) {
      const std::byte* want = e.data() + r.first;
      const std::byte* got = call.got[i].data() + r.first;
      const std::byte* made = v.data() + r.first;
      for (std::size_t b = 0; b < r.bytes; ++b) {
        if (want[b] == got[b] && want[b] == made[b]) continue;
        ++found.either;
        found.explained += want[b] != got[b] && got[b] == made[b] ? 1 : 0;
      }
    }
  }
  return found;
}

overlap try_rules(const observed_call& call, const Rules& rules) {
  std::vector<buffer> inputs = call.inputs;
  return overlap_of(call, expected_results(contract_of(call.kernel), call.attributes, inputs,
                                           call.fill, rules, call.expected));
}

explanation explanation_of(const std::vector<const fault*>& faults, const overlap& found) {
  explanation made;
  for (const fault* f : faults) {
    made.faults.emplace_back(f->name);
    made.texts.emplace_back(f->text);
  }
  made.complete = found.complete();
  made.share = found.share();
  return made;
}

struct trial {
  const fault* what = nullptr;
  overlap found;
};

Rules rules_with_both(const fault& a, const fault& b, profile p) {
  Rules rules = rules_with(a, p);
  b.edit(rules);
  return rules;
}

}  // namespace

diagnosis diagnose(const observed_call& call, int threads, double seconds) {
  const steady::time_point end = steady::now() + std::chrono::duration_cast<steady::duration>(
                                                     std::chrono::duration<double>(seconds));
  const auto is_sparse = [](const buffer& b) { return b.is_sparse(); };
  // Of a gather only the cache that it reads.
  const bool sparse = std::any_of(call.expected.begin(), call.expected.end(), is_sparse) ||
                      std::any_of(call.inputs.begin(), call.inputs.end(), is_sparse);
  diagnosis made;
  made.kernel = call.kernel;
  made.name = call.name;
  made.bytes_different = overlap_of(call, call.expected).either;
  // Only bytes beside the results differ: no rule of the kernel writes those.
  if (made.bytes_different == 0) return made;

  std::vector<trial> trials;
  for (const fault* f : faults_of(call.kernel)) {
    if (concerns(*f, call.rules) && (sparse || !f->past_2gib)) trials.push_back({f, {}});
  }
  for_each_parallel(trials.size(), threads, [&](std::size_t i) {
    if (steady::now() < end) {
      trials[i].found = try_rules(call, rules_with(*trials[i].what, call.rules));
    }
  });
  const auto add_complete = [&](const std::vector<const fault*>& faults, const overlap& found) {
    if (found.either != 0 && found.complete()) {
      made.explanations.push_back(explanation_of(faults, found));
    }
  };
  for (const trial& t : trials) add_complete({t.what}, t.found);
  if (!made.explanations.empty()) return made;

  // Those that explain most first; what explains nothing is of no use in a pair either.
  trials.erase(std::remove_if(trials.begin(), trials.end(),
                              [](const trial& t) { return t.found.explained == 0; }),
               trials.end());
  std::stable_sort(trials.begin(), trials.end(), [](const trial& a, const trial& b) {
    return a.found.explained > b.found.explained;
  });
  explanation best;
  if (!trials.empty()) {
    const auto most = std::max_element(
        trials.begin(), trials.end(),
        [](const trial& a, const trial& b) { return a.found.share() < b.found.share(); });
    best = explanation_of({most->what}, most->found);
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t sum = 1; sum < 2 * trials.size(); ++sum) {
    for (std::size_t a = 0; 2 * a < sum; ++a) {
      if (sum - a < trials.size()) pairs.emplace_back(a, sum - a);
    }
  }
  std::atomic<bool> found_all{false};
  std::mutex guard;
  for_each_parallel(pairs.size(), threads, [&](std::size_t i) {
    if (found_all || steady::now() >= end) return;
    const fault& a = *trials[pairs[i].first].what;
    const fault& b = *trials[pairs[i].second].what;
    const overlap found = try_rules(call, rules_with_both(a, b, call.rules));
    const std::lock_guard<std::mutex> hold(guard);
    if (found.complete()) found_all = true;
    add_complete({&a, &b}, found);
    if (found.share() > best.share) best = explanation_of({&a, &b}, found);
  });
  if (made.explanations.empty() && best.share > 0) made.explanations.push_back(best);
  return made;
}

namespace {

// Leaves the explanations that hold for another call too, if any does.
void narrow(diagnosis& found, const observed_call& other) {
  std::vector<explanation> left;
  for (const explanation& e : found.explanations) {
    Rules rules = rules_for(other.rules);
    for (const std::string& name : e.faults) find_fault(name)->edit(rules);
    if (try_rules(other, rules).complete()) left.push_back(e);
  }
  if (!left.empty()) found.explanations = std::move(left);
}

}  // namespace

diagnosis diagnose(const examined_calls& calls, int threads, double seconds) {
  constexpr std::size_t most_calls = 64;  // of each kind
  const steady::time_point end = steady::now() + std::chrono::duration_cast<steady::duration>(
                                                     std::chrono::duration<double>(seconds));
  diagnosis found = diagnose(calls.failing.front()(), threads, seconds);
  for (const auto* kind : {&calls.failing, &calls.passing}) {
    for (std::size_t i = kind == &calls.failing ? 1 : 0; i < std::min(kind->size(), most_calls);
         ++i) {
      if (found.explanations.size() < 2 || steady::now() >= end) break;
      narrow(found, (*kind)[i]());
    }
  }
  return found;
}

}  // namespace kvcts
