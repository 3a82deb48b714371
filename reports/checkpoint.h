// A run's results on disk, case by case, so that a run which was killed goes on where it was.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

// What a checkpoint belongs to, in words: {"candidate", "cpu (avx512)"}, {"shard", "2/4"}, ...
using checkpoint_identity = std::vector<std::pair<std::string, std::string>>;

// JSON lines: the identity, then one case a line, appended whole. A last line that was torn is cut
// off; any other damage is refused.
class checkpoint {
 public:
  // Opens or begins the file and locks it. Throws input_error: it cannot be written, is in use, is
  // damaged, is no checkpoint, is another run's.
  checkpoint(std::string path, const checkpoint_identity& whose);
  ~checkpoint();
  checkpoint(const checkpoint&) = delete;
  checkpoint& operator=(const checkpoint&) = delete;

  std::size_t size() const { return cases_.size(); }
  // By the position in the plan; nullptr: not run yet. Throws input_error where the position is
  // another case's.
  const case_result* find(std::uint64_t position, const std::string& kernel,
                          const std::string& name) const;
  // The system has the line when this returns (the process may be killed); the disk has it after
  // a fraction of a second, or when the object goes.
  void add(const case_result& c);

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void load(const std::string& header);
  void append(const std::string& line);

  std::string path_;
  int file_ = -1;
  std::map<std::uint64_t, case_result> cases_;
  std::chrono::steady_clock::time_point synced_;
};

}  // namespace kvcts
