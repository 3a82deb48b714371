// Runs the cases of a suite on a candidate and judges every byte.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "conformance/cases/cases.h"
#include "conformance/runner/result.h"
#include "vectors/suite.h"

namespace kvcts {

std::string_view name_of(level l);
// Throw input_error that lists the known names.
level level_from_name(std::string_view name);
profile profile_from_name(std::string_view name);

// Names of the kernels that have a reference, separated by `separator`.
std::string implemented_kernels(std::string_view separator);

// Patterns of the shell, separated by commas ("mxfp4_*,quantize*"); an empty text matches all.
class name_patterns {
 public:
  explicit name_patterns(std::string_view patterns);
  bool matches(std::string_view name) const;
  // The first that matches none of the names; empty: each matches one.
  std::optional<std::string> without_match(const std::vector<std::string_view>& names) const;

 private:
  std::vector<std::string> patterns_;
};

// Patterns of kernels. Throws input_error where one matches no kernel.
class kernel_filter {
 public:
  explicit kernel_filter(std::string_view patterns);
  bool matches(std::string_view kernel) const { return patterns_.matches(kernel); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  name_patterns patterns_;
};

// A case that is not loaded yet.
struct planned_case {
  std::string kernel, name;
  std::vector<std::string> flags;
  std::string source;      // "built-in", or the file
  std::string provenance;  // "captured", "derived"
  profile rules = profile::nvidia;
  std::uint64_t position = 0;       // in the plan of all shards
  std::string replay;               // arguments of `kvcts run` that run it alone
  std::function<test_case()> load;  // `expected` is empty where the reference is to fill it
};

std::vector<planned_case> plan_built_in(const kernel_filter& kernels, level up_to,
                                        std::uint64_t seed, profile p);
// Cases of a vector file, under the file's own profile. Throws input_error where one of the
// chosen kernels is not implemented in this version.
std::vector<planned_case> plan_file(const std::string& path, const kernel_filter& kernels);

struct run_options {
  level up_to = level::acceptance;
  profile rules = profile::nvidia;
  std::uint64_t seed = 1;
  int threads = 0;  // that prepare cases; 0: all cores
  int repeat = 1;   // calls of each pass: outputs that change from one to the next are a failure
  double diagnose_seconds = 10;  // a kernel whose bytes differ; 0: no diagnosis
  // The same candidate on other devices. Cases are dealt out in turn, by their place in the plan,
  // and each device works by itself.
  std::vector<candidate*> on_other_devices;
  // The result of an earlier, interrupted run, or nullptr; and what takes each new one.
  std::function<const case_result*(const planned_case&)> recall;
  std::function<void(const case_result&)> record;
  // Called after each case: done, in all.
  std::function<void(std::size_t, std::size_t)> progress;
};

// Each case runs twice: outputs start as 0xCC, then as 0x33; buffers updated in place start as the
// case says, then with every bit turned (so that canary 0xCC becomes 0x33); bytes of inputs that no
// element covers are turned too. (Sparse buffers start as zero, and what is drawn into them is
// turned.) The reference gives the expected bytes of the second run. Whole
// buffers are compared, guards beside them and the inputs too.
// A case that fails is run again alone, where the candidate has processes to renew: damage of an
// earlier case shows late. A kernel that timed out in 8 cases is not waited for any more.
// Throws input_error where a case breaks its contract.
run_result run_suite(const std::vector<planned_case>& plan, candidate& subject,
                     const run_options& options);
// One case, for tests.
case_result run_case(const test_case& c, candidate& subject, profile p, int repeat = 1);

// "conforms: 268 cases, 12,345,678 bytes compared, 0 differ", ...
std::string verdict_of(const run_result& result);
// What follows from the cases: kernels claimed and in all, suite digest, verdict.
void sum_up(run_result& result);
// 12345678 -> "12,345,678".
std::string grouped(std::uint64_t n);
// Host, compiler, version, time.
std::map<std::string, std::string> environment_here();

// Calls work(i) for i in [0, count) on `threads` threads; the first exception is thrown again.
void for_each_parallel(std::size_t count, int threads,
                       const std::function<void(std::size_t)>& work);

}  // namespace kvcts
