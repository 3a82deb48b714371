// A campaign: sweeps cut into pieces, spread over threads and shards, kept in a checkpoint.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/exhaustive/sweep.h"
#include "conformance/runner/result.h"
#include "conformance/runner/shard.h"

namespace kvcts {

// Nanoseconds an input takes one thread, tried on a few inputs.
double measured_rate(const sweep& s);

// Number of a sweep, number of its piece.
struct sweep_piece {
  std::size_t sweep = 0;
  std::uint64_t piece = 0;
};
// The pieces of a shard, in the order in which they are taken; shards take equally long by the
// table of costs.
std::vector<sweep_piece> pieces_of(const std::vector<sweep>& sweeps, const shard& part);

struct finished_piece {
  sweep_finding found;
  double seconds = 0;  // of one thread
};

// Finished pieces in a file, one line each, on disk before the next piece is taken. A line that was
// cut short is dropped. The header names the work: what another program or candidate finished
// counts for nothing here.
class sweep_checkpoint {
 public:
  // An empty path: nothing is kept. Throws input_error where the file cannot be written, is of
  // other work or in use.
  sweep_checkpoint(const std::string& path, const std::string& work);
  ~sweep_checkpoint();
  sweep_checkpoint(const sweep_checkpoint&) = delete;
  sweep_checkpoint& operator=(const sweep_checkpoint&) = delete;

  // Null where it is not finished.
  const finished_piece* find(const std::string& sweep, std::uint64_t piece) const;
  void add(const std::string& sweep, std::uint64_t piece, const finished_piece& finished);

 private:
  void read(const std::string& path, const std::string& work);

  std::string path_;
  int file_ = -1;
  std::map<std::pair<std::string, std::uint64_t>, finished_piece> known_;
};

struct campaign_options {
  int threads = 0;  // 0: all cores
  shard part;
  // After each piece, and for those of the checkpoint: one call at a time.
  std::function<void(const sweep_piece&)> progress;
  // A sweep of which this shard has no piece left.
  std::function<void(const sweep_result&)> finished;
};
// In the order of the sweeps.
std::vector<sweep_result> run_campaign(const std::vector<sweep>& sweeps,
                                       sweep_checkpoint& checkpoint,
                                       const campaign_options& options);

}  // namespace kvcts
