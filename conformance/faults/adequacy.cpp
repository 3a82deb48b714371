#include "conformance/faults/adequacy.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "conformance/cases/smoke.h"
#include "conformance/compare/compare.h"
#include "conformance/runner/oracle.h"
#include "reference/kernels/kernels.h"

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

bool catches(loaded_case& c, const fault& f) {
  const kernel_contract& contract = contract_of(c.made.kernel);
  const std::vector<buffer> found = expected_results(
      contract, c.made.attributes, c.made.inputs, canary, rules_with(f, c.rules), c.made.expected);
  for (const buffer& made : found) {
    const buffer& expected = *find_buffer(c.made.expected, made.name);
    if (!made.is_sparse()) {
      if (made.bytes != expected.bytes) return true;
      continue;
    }
    std::vector<buffer> none;
    const call context = make_call(c.made.kernel, c.made.attributes, c.made.inputs, none);
    const comparison compared =
        compare_buffers(contract, context, check(contract, context, false), {expected}, {made});
    if (compared.different != 0) return true;
  }
  return false;
}

class kernel_trials {
 public:
  kernel_trials(const adequacy_options& options, std::string kernel, adequacy& result)
      : options_(options), kernel_(std::move(kernel)), result_(result) {}

  void run(const std::vector<planned_case>& plan) {
    std::vector<const fault*> small, large;
    for (const fault* f : faults_of(kernel_)) (f->past_2gib ? large : small).push_back(f);
    try_all(load_cases(plan, options_.threads), small);
    if (large.empty() || options_.candidates) return;
    if (options_.vectors.empty()) {
      std::vector<planned_case> sparse = sparse_plan(kernel_, options_.seed);
      drop_flagged(sparse);
      try_all(load_cases(sparse, options_.threads), large);
      return;
    }
    for (const fault* f : large) {
      result_.not_tried.push_back(kernel_ + ", " + std::string(f->name) +
                                  ": a file holds nothing past 2 GiB");
    }
  }

  void drop_flagged(std::vector<planned_case>& plan) const {
    if (options_.without_flag.empty()) return;
    plan.erase(std::remove_if(plan.begin(), plan.end(),
                              [&](const planned_case& c) {
                                return has_flag(c.flags.empty() ? c.load().flags : c.flags,
                                                options_.without_flag);
                              }),
               plan.end());
  }

 private:
  void try_all(std::vector<loaded_case> cases, const std::vector<const fault*>& faults) {
    const std::size_t first = result_.cases.size();
    std::vector<profile> profiles;
    for (const loaded_case& c : cases) {
      result_.cases.push_back(header_of(c));
      if (std::find(profiles.begin(), profiles.end(), c.rules) == profiles.end()) {
        profiles.push_back(c.rules);
      }
    }
    // Where every case was dropped, every fault survives.
    if (profiles.empty()) profiles.push_back(profile::nvidia);
    std::sort(profiles.begin(), profiles.end());
    const std::size_t first_trial = result_.trials.size();
    for (const fault* f : faults) {
      bool any = false;
      for (const profile p : profiles) {
        if (!concerns(*f, p)) continue;
        result_.trials.push_back({kernel_, f, p, 0, {}});
        any = true;
      }
      if (!any) {
        result_.not_tried.push_back(kernel_ + ", " + std::string(f->name) +
                                    ": a fault of the other profile");
      }
    }
    for_each_parallel(result_.trials.size() - first_trial, options_.threads, [&](std::size_t i) {
      fault_trial& trial = result_.trials[first_trial + i];
      for (std::size_t n = 0; n < cases.size(); ++n) {
        if (cases[n].rules != trial.rules) continue;
        ++trial.tried;
        if (!catches(cases[n], *trial.what)) continue;
        trial.catches.push_back(first + n);
        if (!options_.every_case) break;
      }
    });
  }

  const adequacy_options& options_;
  std::string kernel_;
  adequacy& result_;
};

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
  std::map<std::string, std::vector<planned_case>> by_kernel;
  for (planned_case& c : plan_of(options)) by_kernel[c.kernel].push_back(std::move(c));
  if (by_kernel.empty()) {
    throw input_error(options.vectors + ": holds no case of the kernels chosen");
  }
  adequacy result;
  std::size_t done = 0;
  for (auto& [kernel, plan] : by_kernel) {
    kernel_trials trials(options, kernel, result);
    trials.drop_flagged(plan);
    trials.run(plan);
    if (options.progress) options.progress(++done, by_kernel.size());
  }
  return result;
}

std::set<std::pair<std::string, std::string>> reduced(const adequacy& all) {
  // What each case is good for, in the order of `all`: small cases first.
  struct choice {
    std::pair<std::string, std::string> which;
    std::set<std::size_t> wants;
  };
  std::vector<choice> choices;
  std::map<std::pair<std::string, std::string>, std::size_t> at;
  std::map<std::pair<std::string, std::string>, std::size_t> flags;
  std::set<std::size_t> open;
  std::size_t numbers = 0;
  for (const adequacy_case& c : all.cases) {
    const auto [found, is_new] = at.emplace(std::pair(c.kernel, c.name), choices.size());
    if (is_new) choices.push_back({{c.kernel, c.name}, {}});
    for (const std::string& flag : c.flags) {
      const auto [number, is_first] = flags.emplace(std::pair(c.kernel, flag), numbers);
      if (is_first) open.insert(numbers++);
      choices[found->second].wants.insert(number->second);
    }
  }
  for (const fault_trial& t : all.trials) {
    if (t.catches.empty()) continue;
    for (const std::size_t c : t.catches) {
      choices[at.at({all.cases[c].kernel, all.cases[c].name})].wants.insert(numbers);
    }
    open.insert(numbers++);
  }
  std::set<std::pair<std::string, std::string>> chosen;
  while (!open.empty()) {
    const choice* best = nullptr;
    std::ptrdiff_t most = 0;
    for (const choice& c : choices) {
      const auto good = std::count_if(c.wants.begin(), c.wants.end(),
                                      [&](std::size_t n) { return open.count(n) != 0; });
      if (good > most) {
        best = &c;
        most = good;
      }
    }
    if (best == nullptr) break;
    for (const std::size_t n : best->wants) open.erase(n);
    chosen.insert(best->which);
  }
  return chosen;
}

}  // namespace kvcts
