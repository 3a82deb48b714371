#include "conformance/candidate/candidate.h"

#include <algorithm>
#include <thread>

#include "conformance/candidate/devices.h"
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
  // `device`: the CUDA runtime's own choice where it is null.
  explicit cuda_candidate(cuda_status status, std::unique_ptr<device_context> device = nullptr)
      : status_(std::move(status)), device_(std::move(device)) {}
  std::string name() const override { return "cuda"; }
  std::string version() const override { return status_.device + ", driver " + status_.driver; }
  bool supports(std::string_view kernel) const override { return cuda_supports(kernel); }
  void run(const call& c, profile p) override {
    if (device_ != nullptr) device_->make_current();
    run_cuda_on_host_buffers(c, p);
  }

 private:
  cuda_status status_;
  std::unique_ptr<device_context> device_;
};

cuda_status status_of_cuda() {
  cuda_status status = cuda_available();
  if (!status.available) throw input_error("candidate cuda cannot run here: " + status.why_not);
  return status;
}

}  // namespace

const std::vector<std::string_view>& built_in_candidates() {
  static const std::vector<std::string_view> names = {"reference", "cpu", "cuda"};
  return names;
}

bool is_library_name(std::string_view name) {
  constexpr std::string_view ending = ".so";
  return name.find('/') != std::string_view::npos ||
         (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending);
}

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<candidate> make_candidate(std::string_view name, int threads, double seconds) {
  threads = thread_count(threads);
  if (name == "reference") return candidate_of_rules("reference", rules_for);
  if (name == "cpu") return std::make_unique<cpu_candidate>(threads);
  if (name == "cuda") return std::make_unique<cuda_candidate>(status_of_cuda());
  if (is_library_name(name)) {
    return std::make_unique<library_candidate>(std::string(name), seconds);
  }
  throw input_error("unknown candidate '" + std::string(name) +
                    "': the candidates are reference, cpu, cuda, or the path of a library (.so)");
}

candidates_on_devices make_candidates(std::string_view name, int threads, double seconds,
                                      const std::string& devices) {
  candidates_on_devices made;
  if (devices.empty()) {
    made.all.push_back(make_candidate(name, threads, seconds));
    return made;
  }
  if (name != "cuda" && !is_library_name(name)) {
    make_candidate(name, threads, seconds);  // refuses an unknown one
    throw input_error("--devices " + devices + ": candidate " + std::string(name) +
                      " runs on no CUDA device: leave --devices out");
  }
  if (name == "cuda") status_of_cuda();
  for (const cuda_driver_device& d : choose_devices(devices)) {
    made.devices +=
        (made.devices.empty() ? "" : ", ") + std::to_string(d.number) + " (" + d.name + ")";
    if (name == "cuda") {
      made.all.push_back(std::make_unique<cuda_candidate>(
          status_of_cuda(), std::make_unique<device_context>(d.number)));
      continue;
    }
    auto one = std::make_unique<library_candidate>(std::string(name), seconds, d.visible);
    if (!one->is_on_cuda()) {
      throw input_error("--devices " + devices + ": " + std::string(name) +
                        " takes host memory: leave --devices out");
    }
    made.all.push_back(std::move(one));
  }
  return made;
}

std::unique_ptr<candidate> candidate_of_rules(std::string name,
                                              std::function<Rules(profile)> rules) {
  return std::make_unique<rules_candidate>(std::move(name), std::move(rules));
}

}  // namespace kvcts
