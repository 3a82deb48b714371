// Speed of the optimized kernels. Ratios are taken in one run, on one machine, over the problems of
// bench/problems.h. Bytes are those read plus those written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/layout/tensor.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// --- A second candidate, measured beside ours in this process, in turn, in the profile nvidia.

// `not_captured`: it cannot be a node of a CUDA graph.
enum class vs_state : std::uint8_t { measured, not_claimed, failed, not_captured };
struct vs_answer {
  vs_state state = vs_state::measured;
  std::string message;  // why not, in its own words; may be empty
};

class vs_candidate {
 public:
  virtual ~vs_candidate() = default;
  virtual std::string name() const = 0;
  virtual bool claims(std::string_view kernel) const = 0;
  // A call to be made again and again, on tensors where the candidate wants them; what it queues
  // on the device goes to `stream` (null on a CPU).
  virtual std::function<vs_answer()> prepared(const call& c, void* stream) const = 0;
};

// What became of it in a row. Times and what follows from them only where it was measured.
struct vs_row {
  vs_answer answer;
  // Tensors that differ from ours after one call of each on the same bytes; empty: same bytes.
  std::vector<std::string> differing;
  double time_us = 0;
  double share_of_copy = 0;  // 0 in decode rows
  double ratio = 0;          // its time / ours: above 1 where ours is faster
  bool queued = true;        // CUDA: false where the host's time is in it
};

// What is measured: the kernels that `wanted` says, as far as the candidate has them. `progress`
// hears of each row before it is measured; all may be empty.
struct bench_choice {
  std::function<bool(std::string_view kernel)> wanted;
  std::function<void(const std::string& row)> progress;
  const vs_candidate* vs = nullptr;
};

// --- CUDA. Throws std::runtime_error where there is no device, or on a CUDA error.

struct cuda_bench_row {
  std::string op;
  std::string size;
  std::int64_t bytes = 0;
  double time_us = 0;
  double copy_us = 0;        // a device-to-device copy of bytes/2: as many read and written
  double share_of_copy = 0;  // copy_us / time_us
  double target = 0;         // of that share
  bool fits_l2 = false;      // bytes: the L2 cache could hold them
  int sets = 0;              // of buffers, which the launches take in turn
  std::optional<vs_row> vs;
};
// Large sizes: medians, over more buffers than the L2 cache holds.
std::vector<cuda_bench_row> bench_cuda(const bench_choice& choice);

// A node's time in a replayed graph of 20.
struct cuda_decode_row {
  std::string op;
  std::int64_t tokens = 0;
  double time_us = 0;
  std::optional<vs_row> vs;
};
struct cuda_decode {
  double empty_us = 0;           // of a kernel that does nothing
  std::vector<double> chase_us;  // of one thread that makes 1, 2, ... dependent loads
  std::vector<cuda_decode_row> rows;
};
cuda_decode bench_cuda_decode(const bench_choice& choice);

// --- CPU.

struct cpu_bench_row {
  std::string op;
  std::string size;
  std::int64_t bytes = 0;
  // GB of `bytes` a second, one thread each but for the last.
  double candidate_gbs = 0;
  double reference_gbs = 0;
  double memcpy_gbs = 0;  // of bytes/2
  double threads_gbs = 0;
  int threads = 0;
  double ratio = 0;            // candidate / reference
  double share_of_memcpy = 0;  // candidate / memcpy
  bool moves_only = false;     // the target is a share of memcpy, else a ratio
  double target = 0;
  std::optional<vs_row> vs;  // one thread calls it; share_of_copy: of memcpy
};
// The reference comes from the caller: the optimized kernels do not depend on it.
using bench_function = void (*)(const call&, profile);
std::vector<cpu_bench_row> bench_cpu(const bench_choice& choice, bench_function reference,
                                     int threads);

}  // namespace kvcts
