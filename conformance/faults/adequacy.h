// Which faults of the catalogue a suite catches.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/faults/faults.h"
#include "conformance/runner/run.h"
#include "conformance/runner/shard.h"

namespace kvcts {

struct adequacy_options {
  std::string vectors = {};  // a vector file; empty: the built-in cases, in both profiles
  std::string kernels = {};  // patterns; empty: all
  level up_to = level::smoke;
  bool candidates = false;        // of the level smoke, not the level itself
  std::string without_flag = {};  // cases with this flag are left out
  bool every_case = false;        // false: a pair ends at the first case that catches it
  std::uint64_t seed = 1;
  shard part = {};  // of the trials
  int threads = 0;
  std::function<void(std::size_t, std::size_t)> progress = {};
};

struct adequacy_case {
  std::string kernel, name;
  profile rules = profile::nvidia;
  std::vector<std::string> flags;
};

// One kernel under one fault and profile.
struct fault_trial {
  std::string kernel;
  const fault* what = nullptr;
  profile rules = profile::nvidia;
  std::size_t tried = 0;             // cases
  std::vector<std::size_t> catches;  // numbers of cases; only the first unless every_case
  std::vector<std::uint64_t> wrote;  // digests of the results in those cases
  std::size_t position = 0;          // among the trials of all shards
};

struct adequacy {
  std::vector<adequacy_case> cases;    // the smallest of a kernel first
  std::vector<fault_trial> trials;     // by kernel, then in the catalogue's order
  std::vector<std::string> not_tried;  // "page_offset_i32: a file holds nothing past 2 GiB"
  // Of all shards: how many trials, and what they are of.
  std::size_t trials_of_all = 0;
  std::string plan_digest;

  std::size_t pairs() const;      // (kernel, fault)
  std::size_t faults() const;     // different ones
  std::size_t survivors() const;  // trials that no case catches
};

// Throws input_error where the file or the patterns are wrong.
adequacy try_faults(const adequacy_options& options);

// Of trials of every case: two faults of a kernel whose results no case tells apart in a profile.
struct alike_trials {
  const fault_trial* a = nullptr;
  const fault_trial* b = nullptr;
};
std::vector<alike_trials> alike(const adequacy& all);

// Of trials of every case: those that still catch all that is caught and tell apart all that can
// be, chosen greedily, and for each flag of a kernel at least one. (kernel, case), sorted; a case
// stands for both profiles.
std::set<std::pair<std::string, std::string>> reduced(const adequacy& all);

}  // namespace kvcts
