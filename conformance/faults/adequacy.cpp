#include "conformance/faults/adequacy.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "conformance/cases/smoke.h"
#include "conformance/compare/compare.h"
#include "conformance/runner/costs.h"
#include "conformance/runner/oracle.h"
#include "reference/kernels/kernels.h"
#include "vectors/sha256.h"

namespace kvcts {
namespace {

bool has_flag(const std::vector<std::string>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

struct loaded_case {
  test_case made;
  profile rules = profile::nvidia;
  std::size_t bytes = 0;  // what a trial costs
};

// Names and flags, for what a result says: the bytes go away with the kernel.
adequacy_case header_of(const loaded_case& c) {
  return {c.made.kernel, c.made.name, c.rules, c.made.flags};
}

bool is_past_2gib(const planned_case& c) {
  return has_flag(c.flags, "Past2GiB") || has_flag(c.flags, "Past4GiB");
}

// Cases past 2 GiB lie in sparse memory, beyond the level smoke and in no file. Their addresses do
// not depend on the profile.
std::vector<planned_case> sparse_plan(const std::string& kernel, std::uint64_t seed) {
  std::vector<planned_case> plan =
      plan_built_in(kernel_filter(kernel), level::acceptance, seed, profile::nvidia);
  plan.erase(std::remove_if(plan.begin(), plan.end(),
                            [](const planned_case& c) { return !is_past_2gib(c); }),
             plan.end());
  return plan;
}

std::vector<planned_case> plan_of(const adequacy_options& options) {
  const kernel_filter kernels(options.kernels);
  if (!options.vectors.empty()) return plan_file(options.vectors, kernels);
  const level up_to = options.candidates ? level::acceptance : options.up_to;
  std::vector<planned_case> plan = plan_built_in(kernels, up_to, options.seed, profile::nvidia);
  std::vector<planned_case> ieee = plan_built_in(kernels, up_to, options.seed, profile::ieee);
  std::move(ieee.begin(), ieee.end(), std::back_inserter(plan));
  std::set<std::pair<std::string, std::string>> small;
  for (const kernel_contract* contract : contracts()) {
    if (!options.candidates || !kernels.matches(contract->name)) continue;
    for (const case_spec& c : smoke_candidates(contract->name, options.seed)) {
      small.emplace(c.kernel, c.name);
    }
  }
  plan.erase(
      std::remove_if(
          plan.begin(), plan.end(),
          [&](const planned_case& c) {
            return is_past_2gib(c) || (options.candidates && small.count({c.kernel, c.name}) == 0);
          }),
      plan.end());
  return plan;
}

std::vector<loaded_case> load_cases(const std::vector<planned_case>& plan, int threads) {
  std::vector<loaded_case> cases(plan.size());
  for_each_parallel(plan.size(), threads, [&](std::size_t i) {
    loaded_case& c = cases[i];
    c.made = plan[i].load();
    c.rules = plan[i].rules;
    if (c.made.expected.empty()) fill_expected(c.made, c.rules);
    for (const buffer& b : c.made.inputs) c.bytes += b.size();
    for (const buffer& b : c.made.expected) c.bytes += b.size();
  });
  std::sort(cases.begin(), cases.end(), [](const loaded_case& a, const loaded_case& b) {
    return std::tie(a.bytes, a.made.name, a.rules) < std::tie(b.bytes, b.made.name, b.rules);
  });
  return cases;
}

std::uint64_t digest_of(const std::vector<buffer>& results) {
  sha256_stream bytes;
  for (const buffer& b : results) {
    if (!b.is_sparse()) bytes.add(b.data(), b.size());
  }
  return std::stoull(bytes.finish().substr(0, 16), nullptr, 16);
}

// Absent where the results are the right ones, else a digest of them.
std::optional<std::uint64_t> caught(loaded_case& c, const fault& f) {
  const kernel_contract& contract = contract_of(c.made.kernel);
  const std::vector<buffer> found = expected_results(
      contract, c.made.attributes, c.made.inputs, canary, rules_with(f, c.rules), c.made.expected);
  for (const buffer& made : found) {
    const buffer& expected = *find_buffer(c.made.expected, made.name);
    if (!made.is_sparse()) {
      if (made.bytes != expected.bytes) return digest_of(found);
      continue;
    }
    std::vector<buffer> none;
    const call context = make_call(c.made.kernel, c.made.attributes, c.made.inputs, none);
    const comparison compared =
        compare_buffers(contract, context, check(contract, context, false), {expected}, {made});
    if (compared.different != 0) return 0;
  }
  return std::nullopt;
}

// Trials of one kernel on the same cases.
struct trial_group {
  std::string kernel;
  std::vector<planned_case> plan;
  std::vector<fault_trial> trials;
};

void drop_flagged(std::vector<planned_case>& plan, const std::string& flag) {
  if (flag.empty()) return;
  plan.erase(std::remove_if(plan.begin(), plan.end(),
                            [&](const planned_case& c) {
                              return has_flag(c.flags.empty() ? c.load().flags : c.flags, flag);
                            }),
             plan.end());
}

trial_group group_of(const std::string& kernel, std::vector<planned_case> plan,
                     const std::vector<const fault*>& faults, adequacy& result) {
  trial_group group{kernel, std::move(plan), {}};
  std::set<profile> profiles;
  for (const planned_case& c : group.plan) profiles.insert(c.rules);
  // Where every case was dropped, every fault survives.
  if (profiles.empty()) profiles.insert(profile::nvidia);
  for (const fault* f : faults) {
    bool any = false;
    for (const profile p : profiles) {
      if (!concerns(*f, p)) continue;
      fault_trial trial;
      trial.kernel = kernel;
      trial.what = f;
      trial.rules = p;
      trial.position = result.trials_of_all++;
      group.trials.push_back(std::move(trial));
      any = true;
    }
    if (!any) {
      result.not_tried.push_back(kernel + ", " + std::string(f->name) +
                                 ": a fault of the other profile");
    }
  }
  return group;
}

// Every kernel's trials, nothing loaded yet; `result` learns what is not tried.
std::vector<trial_group> groups_of(const adequacy_options& options, adequacy& result) {
  std::map<std::string, std::vector<planned_case>> by_kernel;
  for (planned_case& c : plan_of(options)) by_kernel[c.kernel].push_back(std::move(c));
  if (by_kernel.empty()) {
    throw input_error(options.vectors + ": holds no case of the kernels chosen");
  }
  std::vector<trial_group> groups;
  for (auto& [kernel, plan] : by_kernel) {
    std::vector<const fault*> small, large;
    for (const fault* f : faults_of(kernel)) (f->past_2gib ? large : small).push_back(f);
    drop_flagged(plan, options.without_flag);
    groups.push_back(group_of(kernel, std::move(plan), small, result));
    if (large.empty() || options.candidates) continue;
    if (options.vectors.empty()) {
      std::vector<planned_case> sparse = sparse_plan(kernel, options.seed);
      drop_flagged(sparse, options.without_flag);
      groups.push_back(group_of(kernel, std::move(sparse), large, result));
      continue;
    }
    for (const fault* f : large) {
      result.not_tried.push_back(kernel + ", " + std::string(f->name) +
                                 ": a file holds nothing past 2 GiB");
    }
  }
  return groups;
}

std::string digest_of(const std::vector<trial_group>& groups, const adequacy_options& options) {
  std::vector<planned_case> cases;
  sha256_stream to;
  const auto put = [&to](const std::string& text) {
    to.add(text.data(), text.size());
    to.add("\n", 1);
  };
  for (const trial_group& g : groups) {
    cases.insert(cases.end(), g.plan.begin(), g.plan.end());
    for (const fault_trial& t : g.trials) {
      put(t.kernel + " " + std::string(t.what->name) + " " + std::string(name_of(t.rules)));
    }
  }
  run_options run;
  run.up_to = options.up_to;
  run.seed = options.seed;
  put(plan_digest(cases, run));
  return to.finish();
}

// A trial costs as a case of its group.
void keep_shard(std::vector<trial_group>& groups, const shard& part) {
  std::vector<std::uint64_t> costs;
  for (const trial_group& g : groups) {
    std::uint64_t all = 0;
    for (const planned_case& c : g.plan) all += cost_of(c.kernel, c.name);
    costs.insert(costs.end(), g.trials.size(), all / std::max<std::size_t>(g.plan.size(), 1));
  }
  const std::vector<int> where = partition(costs, part.count);
  for (trial_group& g : groups) {
    g.trials.erase(
        std::remove_if(g.trials.begin(), g.trials.end(),
                       [&](const fault_trial& t) { return where[t.position] != part.index; }),
        g.trials.end());
  }
}

void run_trials(trial_group& group, const adequacy_options& options, adequacy& result) {
  if (group.trials.empty()) return;
  std::vector<loaded_case> cases = load_cases(group.plan, options.threads);
  const std::size_t first = result.cases.size();
  for (const loaded_case& c : cases) result.cases.push_back(header_of(c));
  for_each_parallel(group.trials.size(), options.threads, [&](std::size_t i) {
    fault_trial& trial = group.trials[i];
    for (std::size_t n = 0; n < cases.size(); ++n) {
      if (cases[n].rules != trial.rules) continue;
      ++trial.tried;
      const std::optional<std::uint64_t> wrote = caught(cases[n], *trial.what);
      if (!wrote) continue;
      trial.catches.push_back(first + n);
      trial.wrote.push_back(*wrote);
      if (!options.every_case) break;
    }
  });
  std::move(group.trials.begin(), group.trials.end(), std::back_inserter(result.trials));
}

}  // namespace

std::size_t adequacy::pairs() const {
  std::set<std::pair<std::string, const fault*>> found;
  for (const fault_trial& t : trials) found.emplace(t.kernel, t.what);
  return found.size();
}

std::size_t adequacy::faults() const {
  std::set<const fault*> found;
  for (const fault_trial& t : trials) found.insert(t.what);
  return found.size();
}

std::size_t adequacy::survivors() const {
  return static_cast<std::size_t>(std::count_if(
      trials.begin(), trials.end(), [](const fault_trial& t) { return t.catches.empty(); }));
}

adequacy try_faults(const adequacy_options& options) {
  if (!options.without_flag.empty()) {
    const std::vector<flag_text>& known = flag_table();
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const flag_text& f) {
      return f.flag == options.without_flag;
    });
    if (!is_known) {
      throw input_error("unknown flag '" + options.without_flag +
                        "': kvcts describe KERNEL names the flags of a kernel's cases");
    }
  }
  adequacy result;
  std::vector<trial_group> groups = groups_of(options, result);
  if (!options.part.is_whole()) {
    result.plan_digest = digest_of(groups, options);
    keep_shard(groups, options.part);
  }
  std::size_t done = 0;
  for (trial_group& group : groups) {
    run_trials(group, options, result);
    group.plan.clear();
    if (options.progress) options.progress(++done, groups.size());
  }
  return result;
}

namespace {

// Cases in which two trials of one kernel and profile have different results; both lists of
// catches are sorted.
std::vector<std::size_t> told_apart(const fault_trial& a, const fault_trial& b) {
  std::vector<std::size_t> cases;
  std::size_t i = 0, j = 0;
  while (i < a.catches.size() || j < b.catches.size()) {
    const bool only_a =
        j == b.catches.size() || (i < a.catches.size() && a.catches[i] < b.catches[j]);
    const bool only_b =
        i == a.catches.size() || (j < b.catches.size() && b.catches[j] < a.catches[i]);
    if (only_a || only_b || a.wrote[i] != b.wrote[j]) {
      cases.push_back(only_b ? b.catches[j] : a.catches[i]);
    }
    i += only_b ? 0 : 1;
    j += only_a ? 0 : 1;
  }
  return cases;
}

// Each two trials of one kernel and profile that a case catches, and the cases that part them.
void for_each_two(
    const adequacy& all,
    const std::function<void(const alike_trials&, const std::vector<std::size_t>&)>& f) {
  for (auto a = all.trials.begin(); a != all.trials.end(); ++a) {
    for (auto b = std::next(a); b != all.trials.end(); ++b) {
      if (a->kernel != b->kernel || a->rules != b->rules) continue;
      if (a->what->past_2gib || b->what->past_2gib) continue;
      if (!a->catches.empty() && !b->catches.empty()) f({&*a, &*b}, told_apart(*a, *b));
    }
  }
}

}  // namespace

std::vector<alike_trials> alike(const adequacy& all) {
  std::vector<alike_trials> found;
  for_each_two(all, [&](const alike_trials& two, const std::vector<std::size_t>& apart) {
    if (apart.empty()) found.push_back(two);
  });
  return found;
}

std::set<std::pair<std::string, std::string>> reduced(const adequacy& all) {
  // What each case is good for, in the order of `all`: small cases first.
  struct choice {
    std::pair<std::string, std::string> which;
    std::set<std::size_t> wants;  // numbers of what is not yet met
  };
  std::vector<choice> choices;
  std::map<std::pair<std::string, std::string>, std::size_t> at, flags;
  std::size_t numbers = 0;
  for (const adequacy_case& c : all.cases) {
    const auto [found, is_new] = at.emplace(std::pair(c.kernel, c.name), choices.size());
    if (is_new) choices.push_back({{c.kernel, c.name}, {}});
    for (const std::string& flag : c.flags) {
      const auto [number, is_first] = flags.emplace(std::pair(c.kernel, flag), numbers);
      numbers += is_first ? 1 : 0;
      choices[found->second].wants.insert(number->second);
    }
  }
  const auto want_one_of = [&](const std::vector<std::size_t>& cases) {
    for (const std::size_t c : cases) {
      choices[at.at({all.cases[c].kernel, all.cases[c].name})].wants.insert(numbers);
    }
    ++numbers;
  };
  for (const fault_trial& t : all.trials) want_one_of(t.catches);
  for_each_two(all, [&](const alike_trials& /*two*/, const std::vector<std::size_t>& apart) {
    want_one_of(apart);
  });
  std::set<std::pair<std::string, std::string>> chosen;
  for (;;) {
    const auto best = std::max_element(
        choices.begin(), choices.end(),
        [](const choice& a, const choice& b) { return a.wants.size() < b.wants.size(); });
    if (best == choices.end() || best->wants.empty()) return chosen;
    chosen.insert(best->which);
    const std::set<std::size_t> met = std::move(best->wants);
    best->wants.clear();
    for (choice& c : choices) {
      if (c.which.first != best->which.first) continue;
      for (auto w = c.wants.begin(); w != c.wants.end();)
        w = met.count(*w) ? c.wants.erase(w) : std::next(w);
    }
  }
}

}  // namespace kvcts
