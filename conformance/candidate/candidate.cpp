#include "conformance/candidate/candidate.h"

#include <algorithm>
#include <thread>

#include "conformance/candidate/library.h"
#include "optimized/optimized.h"
#include "reference/kernels/kernels.h"

namespace kvcts {
namespace {

class rules_candidate : public candidate {
 public:
  rules_candidate(std::string name, std::function<Rules(profile)> rules)
      : name_(std::move(name)), rules_(std::move(rules)) {}
  std::string name() const override { return name_; }
  std::string version() const override { return "scalar"; }
  bool supports(std::string_view kernel) const override { return reference_of(kernel) != nullptr; }
  void run(const call& c, profile p) override { reference_of(c.kernel)(c, rules_(p)); }

 private:
  std::string name_;
  std::function<Rules(profile)> rules_;
};

class cpu_candidate : public candidate {
 public:
  explicit cpu_candidate(int threads) : threads_(threads) {}
  std::string name() const override { return "cpu"; }
  std::string version() const override { return cpu_target(); }
  bool supports(std::string_view kernel) const override { return cpu_supports(kernel); }
  void run(const call& c, profile p) override { run_cpu(c, p, threads_); }

 private:
  int threads_;
};

class cuda_candidate : public candidate {
 public:
  explicit cuda_candidate(cuda_status status) : status_(std::move(status)) {}
  std::string name() const override { return "cuda"; }
  std::string version() const override { return status_.device + ", driver " + status_.driver; }
  bool supports(std::string_view kernel) const override { return cuda_supports(kernel); }
  void run(const call& c, profile p) override { run_cuda_on_host_buffers(c, p); }

 private:
  cuda_status status_;
};

bool is_library_name(std::string_view name) {
  constexpr std::string_view ending = ".so";
  return name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending;
}

}  // namespace

const std::vector<std::string_view>& built_in_candidates() {
  static const std::vector<std::string_view> names = {"reference", "cpu", "cuda"};
  return names;
}

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<candidate> make_candidate(std::string_view name, int threads, double seconds) {
  threads = thread_count(threads);
  if (name == "reference") return candidate_of_rules("reference", rules_for);
  if (name == "cpu") return std::make_unique<cpu_candidate>(threads);
  if (name == "cuda") {
    cuda_status status = cuda_available();
    if (!status.available) throw input_error("candidate cuda cannot run here: " + status.why_not);
    return std::make_unique<cuda_candidate>(std::move(status));
  }
  if (name.find('/') != std::string_view::npos || is_library_name(name)) {
    return std::make_unique<library_candidate>(std::string(name), seconds);
  }
  throw input_error("unknown candidate '" + std::string(name) +
                    "': the candidates are reference, cpu, cuda, or the path of a library (.so)");
}

std::unique_ptr<candidate> candidate_of_rules(std::string name,
                                              std::function<Rules(profile)> rules) {
  return std::make_unique<rules_candidate>(std::move(name), std::move(rules));
}

}  // namespace kvcts
