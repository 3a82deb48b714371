// What the suite examines: an implementation of some of the kernels.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/result.h"
#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

struct test_case;

// A call that did not end in bytes to compare: unsupported, crashed, timed out, or failed (the
// candidate says so, or did what it must not).
class call_failure : public std::runtime_error {
 public:
  call_failure(outcome what, const std::string& message)
      : std::runtime_error(message), what_(what) {}
  outcome result() const { return what_; }

 private:
  outcome what_;
};

// Bytes beside a buffer that no call may change.
struct guard_region {
  std::string argument;
  const std::byte* at = nullptr;
  std::size_t bytes = 0;
  bool before = false;  // the buffer
};

class candidate {
 public:
  virtual ~candidate() = default;
  virtual std::string name() const = 0;
  // What tells builds or devices apart: "avx512", "NVIDIA H200, driver ...".
  virtual std::string version() const = 0;
  virtual bool supports(std::string_view kernel) const = 0;
  // The call's tensors are in host memory and have passed check(), outputs allocated. An exception
  // is a crash, but for call_failure.
  virtual void run(const call& c, profile p) = 0;

  // What `--candidate` names it by.
  virtual std::string argument() const { return name(); }
  // More about it, for the report: "candidate library" -> path, ...
  virtual std::map<std::string, std::string> about() const { return {}; }
  // Why a case of a supported kernel is not claimed.
  virtual std::optional<std::string> not_claimed(const test_case& /*header*/, profile /*p*/) const {
    return std::nullopt;
  }
  // True where run_guarded() puts guards of its own round every storage.
  virtual bool has_own_guards() const { return false; }
  // run(), with the byte that guards are full of. Gives the candidate's own guards as they are
  // after the call; they stay until the next one.
  virtual std::vector<guard_region> run_guarded(const call& c, profile p, std::byte /*fill*/) {
    run(c, p);
    return {};
  }
  // Forgets all state of earlier calls, if it can: the next call runs in a fresh process.
  virtual bool renew() { return false; }
};

// 0 (or less) asks for all cores.
int thread_count(int asked);

// The built-in ones: "reference", "cpu", "cuda".
const std::vector<std::string_view>& built_in_candidates();
// The path of a library, by its form: it has a slash or ends in ".so".
bool is_library_name(std::string_view name);
// A built-in one, or a library with the interface of kvcts_candidate.h; `seconds` is how long one
// of its calls may take. `threads` 0: all cores. Throws input_error for an unknown name, for "cuda"
// where there is no device, for a library that is none.
std::unique_ptr<candidate> make_candidate(std::string_view name, int threads, double seconds = 60);
// The same candidate on each device of a list ("all", "0,2"): a worker process a device for a
// library, a context a device for "cuda". An empty list: make_candidate(), alone. Throws
// input_error for a candidate that runs on no CUDA device, and for devices that are not there.
struct candidates_on_devices {
  std::vector<std::unique_ptr<candidate>> all;
  std::string devices;  // for the report: "0 (NVIDIA H200), 1 (NVIDIA H200)"; empty: no list
};
candidates_on_devices make_candidates(std::string_view name, int threads, double seconds,
                                      const std::string& devices);
// The reference under other rules, played as a candidate.
std::unique_ptr<candidate> candidate_of_rules(std::string name,
                                              std::function<Rules(profile)> rules);

}  // namespace kvcts
