// A candidate from outside: a shared library with the interface of kvcts_candidate.h, run in a
// process of its own.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "conformance/candidate/kvcts_candidate.h"
#include "conformance/candidate/worker.h"
#include "reference/contract/contract.h"

namespace kvcts {

// Numbers and names of the interface.
kvcts_dtype interface_dtype(dtype type);
std::string_view interface_name(dtype type);  // "KVCTS_BF16"
kvcts_role interface_role(role r);

// Memory that kvcts and its worker share; it only grows.
class shared_arena {
 public:
  shared_arena();
  ~shared_arena();
  shared_arena(const shared_arena&) = delete;
  shared_arena& operator=(const shared_arena&) = delete;
  int file() const { return file_; }
  // Pointers from before are no longer good.
  std::byte* at_least(std::size_t bytes);

 private:
  int file_ = -1;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

class library_candidate : public candidate {
 public:
  // Loads the library in a worker that sees the CUDA devices `visible` (empty: all). Throws
  // input_error where it is none, or does not come up.
  library_candidate(const std::string& path, double seconds, std::string visible = "");

  bool is_on_cuda() const { return device_ == KVCTS_CUDA; }

  std::string name() const override { return name_; }
  std::string version() const override { return version_; }
  std::string argument() const override { return path_; }
  std::map<std::string, std::string> about() const override;
  bool supports(std::string_view kernel) const override;
  std::optional<std::string> not_claimed(const test_case& header, profile p) const override;
  void run(const call& c, profile p) override;
  bool has_own_guards() const override { return true; }
  // Storages end at a page without access where `fill` is the first canary, and start at one where
  // it is another. (On a device, and where a storage has holes, bytes stand there instead.)
  std::vector<guard_region> run_guarded(const call& c, profile p, std::byte fill) override;
  bool renew() override;

 private:
  struct placed;
  void start();
  std::vector<placed> place(const call& c, std::byte fill, bool end_flush);
  [[noreturn]] void report_end(const std::vector<placed>& buffers);
  static std::string place_of_fault(const worker::status& seen, const std::vector<placed>& buffers);

  std::string path_;
  double seconds_;
  std::string visible_;
  shared_arena arena_;
  std::unique_ptr<worker_process> worker_;
  std::string name_, version_, vendor_, digest_;
  kvcts_device_type device_ = KVCTS_CPU;
  bool leaked_ = false;  // file descriptors, in the last call
  std::vector<std::string> kernels_, profiles_, flags_not_claimed_;
};

}  // namespace kvcts
