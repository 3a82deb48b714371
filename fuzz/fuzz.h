// Draws cases by RapidCheck's generators, runs them on a candidate, shrinks what fails, and saves
// it as a vector file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "conformance/runner/result.h"
#include "conformance/runner/run.h"
#include "conformance/runner/shard.h"
#include "fuzz/case.h"

namespace kvcts {

struct fuzz_failure;

struct fuzz_options {
  std::string kernels = {};  // patterns; empty: all
  std::optional<std::uint64_t> cases = {};
  std::optional<double> seconds = {};  // whichever of the two is reached first; neither: 1000 cases
  std::uint64_t seed = 1;
  shard part = {};  // `cases` is of all shards
  std::vector<profile> profiles = {profile::nvidia, profile::ieee};
  std::string save = {};  // folder for the files of what fails; it is made where it is missing
  std::size_t shrink_trials = 4000;
  double shrink_seconds = 60;  // of one failure
  // Called after each case: how many, and how many failures.
  std::function<void(std::uint64_t, std::size_t)> progress = {};
  // Called with each failure as soon as it is shrunk and saved.
  std::function<void(const fuzz_failure&)> found = {};
};

struct fuzz_failure {
  std::string kernel;
  profile rules = profile::nvidia;
  std::uint64_t number = 0;  // of the case
  std::string property;      // "agreement", or a relation's name
  std::string text;          // of a relation
  std::size_t tokens = 0, heads = 0, least_tokens = 0, least_heads = 0;  // before, after
  std::size_t trials = 0;
  bool shrunk_fully = true;  // false: time or trials ran out
  test_case smallest;        // `expected` filled; the case whose bytes differ from the reference
  case_result result;        // of it; passed where the relation breaks in the reference as well
  std::string file;          // empty: not saved
  std::string not_saved;     // why, where it should have been
};

// XOR of digests: whatever shards and order they come in, the whole is the same. 64 hex digits.
std::string joined_digest(const std::string& a, const std::string& b);

struct fuzz_report {
  // Of a kernel in a profile. Once it failed, only its cases are counted: what was tried before is
  // another number in each shard.
  struct row {
    std::uint64_t cases = 0, relations = 0, bytes = 0;
    std::string digest = std::string(64, '0');  // of its cases
    double seconds = 0;
  };
  struct rejection {
    std::uint64_t number = 0;
    std::string text;
  };
  std::map<std::pair<std::string, profile>, row> rows;
  std::vector<std::string> not_claimed;  // kernels
  std::vector<fuzz_failure> failures;    // the first of each kernel and profile
  std::vector<rejection> rejected;       // generated cases that break their contract: our fault
  std::uint64_t cases = 0;

  // Of what did not fail: the same seed and number of cases give the same.
  std::string digest() const;

  // 0, 1 or 3, as a run's.
  int exit_status() const;
};

// Throws input_error where patterns or folder are wrong.
fuzz_report fuzz(candidate& subject, const fuzz_options& options);

// Runs the saved case alone, first of the result's cases. Where several faults explain its bytes,
// the kernel's cases of the level smoke leave of them what fits there too.
run_result replay(const fuzz_failure& failure, candidate& subject, const run_options& options);

// Numbers of the cases that a shard draws, rising. A round has a case of each kernel in each
// profile. Of as many rounds as there are shards each takes one, another one each time; what is
// left over is dealt out by cost.
class numbers_of_shard {
 public:
  // `costs`: of the cases of a round. `most`: cases of all shards.
  numbers_of_shard(const shard& part, const std::vector<std::uint64_t>& costs, std::uint64_t most);
  // Nothing: there are no more.
  std::optional<std::uint64_t> next();

 private:
  std::uint64_t index_, count_, turns_, blocks_;
  std::uint64_t block_ = 0, turn_ = 0;
  std::vector<std::uint64_t> rest_;  // numbers, the last one first
};

// Case `number` of a kernel's sequence, for tests.
fuzz_case drawn_case(const fuzz_plan& plan, std::uint64_t seed, std::uint64_t number);

}  // namespace kvcts
