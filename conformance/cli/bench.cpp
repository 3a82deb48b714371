// kvcts bench: speeds as ratios within one run.
#include "optimized/bench.h"

#include <fmt/format.h>

#include "conformance/candidate/candidate.h"
#include "conformance/cli/commands.h"
#include "optimized/optimized.h"
#include "reference/kernels/kernels.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

void run_reference(const call& c, profile p) { reference_of(c.kernel)(c, rules_for(p)); }

void print_cpu(int threads) {
  threads = thread_count(threads);
  fmt::print("cpu ({}), GB of input a second\n", cpu_target());
  for (const cpu_bench_row& r : bench_cpu(run_reference, threads)) {
    fmt::print(
        "{:<40} cpu {:.3f}, reference {:.4f} (one thread each): {:.1f} times; memcpy {:.3f}; {} "
        "threads {:.3f}\n",
        r.op, r.candidate_gbs, r.reference_gbs, r.ratio, r.memcpy_gbs, r.threads, r.threads_gbs);
  }
}

void print_cuda() {
  const cuda_status status = cuda_available();
  if (!status.available) throw input_error("candidate cuda cannot run here: " + status.why_not);
  fmt::print("cuda ({}, driver {}), share of a device copy that moves as many bytes\n",
             status.device, status.driver);
  for (const cuda_bench_row& r : bench_cuda()) {
    fmt::print("{:<40} {:<20} {:>9.1f} us, copy {:>9.1f} us: {:.2f} of a copy ({:.0f} GB/s)\n",
               r.op, r.size, r.time_us, r.copy_time_us, r.share_of_copy,
               static_cast<double>(r.bytes) / r.time_us / 1e3);
  }
  for (const cuda_decode_row& r : bench_cuda_decode()) {
    fmt::print("{:<40} {:>5} tokens {:>9.2f} us, empty kernel {:.2f} us\n", r.op, r.tokens,
               r.time_us, r.empty_us);
  }
}

}  // namespace

int bench_command(const std::string& candidate, int threads) {
  if (candidate == "cuda") {
    print_cuda();
  } else if (candidate == "cpu") {
    print_cpu(threads);
  } else {
    throw input_error(
        fmt::format("unknown candidate '{}': bench measures cpu and cuda", candidate));
  }
  return 0;
}

}  // namespace kvcts
