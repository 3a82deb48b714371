// A candidate's library inside this process, to be measured: nothing stands between the two.
#pragma once

#include <map>
#include <string>

#include "conformance/candidate/kvcts_candidate.h"
#include "conformance/worker/load.h"
#include "optimized/bench.h"

namespace kvcts {

class library_in_process : public vs_candidate {
 public:
  // Loads it in a worker first, so that a library that does not come up ends no process but that.
  // Throws input_error where it is none, or asks for other memory than `memory`.
  library_in_process(const std::string& path, kvcts_device_type memory);

  std::string name() const override { return name_; }
  std::string version() const { return version_; }
  std::map<std::string, std::string> about() const { return about_; }
  bool claims(std::string_view kernel) const override;
  std::function<vs_answer()> prepared(const call& c, void* stream) const override;

 private:
  worker::candidate_library library_;
  std::string name_, version_;
  std::map<std::string, std::string> about_;
};

}  // namespace kvcts
