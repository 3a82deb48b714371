// The `cpu` candidate: chooses the target, splits the tokens among threads.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "optimized/arguments.h"
#include "optimized/cpu/targets.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

// Below this a further thread costs more than it saves.
constexpr std::int64_t bytes_a_thread = 128 * 1024;

bool machine_has(std::string_view target) {
#ifdef KVCTS_X86_TARGETS
  if (target == "avx512") {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("fma") != 0;
  }
  if (target == "avx2") {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  }
#endif
  return target == "baseline";
}

// Those this build knows, the widest first.
const std::vector<const cpu_kernels*>& built_targets() {
  static const std::vector<const cpu_kernels*> targets = {
#ifdef KVCTS_X86_TARGETS
      &avx512::kernels, &avx2::kernels,
#endif
      &baseline::kernels};
  return targets;
}

const cpu_kernels* best_target() {
  for (const cpu_kernels* kernels : built_targets()) {
    if (machine_has(kernels->name)) return kernels;
  }
  return &baseline::kernels;
}

std::atomic<const cpu_kernels*>& chosen_target() {
  static std::atomic<const cpu_kernels*> chosen = best_target();
  return chosen;
}

// Calls run(first, last) for parts of [0, tokens), which together are all of it.
template <class Run>
void in_parts(std::int64_t tokens, std::int64_t bytes_a_token, int threads, const Run& run) {
  const std::int64_t worthwhile =
      tokens * std::max<std::int64_t>(bytes_a_token, 1) / bytes_a_thread;
  const std::int64_t parts = std::clamp<std::int64_t>(std::min<std::int64_t>(threads, worthwhile),
                                                      1, std::max<std::int64_t>(tokens, 1));
  const auto start_of = [&](std::int64_t part) {
    return tokens / parts * part + std::min(part, tokens % parts);
  };
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<std::size_t>(parts));
  for (std::int64_t part = 1; part < parts; ++part) {
    helpers.emplace_back(run, start_of(part), start_of(part + 1));
  }
  run(start_of(0), start_of(1));
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

bool cpu_supports(std::string_view kernel) {
  return kernel == "mxfp4_q_quant" || kernel == "quantize_and_insert_k_cache";
}

std::string cpu_target() { return chosen_target().load()->name; }

void set_cpu_target(std::string_view target) {
  std::string names;
  for (const cpu_kernels* kernels : built_targets()) {
    if (!machine_has(kernels->name)) continue;
    if (target == kernels->name) {
      chosen_target() = kernels;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(kernels->name);
  }
  throw input_error("CPU target '" + std::string(target) + "' is not there; this machine has " +
                    names);
}

void run_cpu(const call& c, profile p, int threads) {
  const cpu_kernels& kernels = *chosen_target().load();
  if (c.kernel == "mxfp4_q_quant") {
    const mxfp4_q_quant_arguments a = mxfp4_q_quant_of(c);
    in_parts(a.tokens, a.padded_heads * 256, threads, [&](std::int64_t first, std::int64_t last) {
      kernels.mxfp4_q_quant(a, p, first, last);
    });
  } else if (c.kernel == "quantize_and_insert_k_cache") {
    const quantize_and_insert_arguments a = quantize_and_insert_of(c);
    in_parts(a.rows, 1024, threads, [&](std::int64_t first, std::int64_t last) {
      kernels.quantize_and_insert(a, p, first, last);
    });
  } else {
    throw input_error("candidate cpu has no kernel '" + c.kernel + "'");
  }
}

}  // namespace kvcts
