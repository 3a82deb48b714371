// The `cpu` candidate: chooses the target, splits the tokens among threads.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

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

// A target: its name, and its kernels in the order of kernels.def.
template <class Arguments>
using rows_function = void (*)(const Arguments&, profile, std::int64_t, std::int64_t);
struct cpu_target_table {
  const char* name;
// NOLINTNEXTLINE(bugprone-macro-parentheses): K is a member's name.
#define KVCTS_KERNEL(K) rows_function<K##_arguments> K;
#include "optimized/kernels.def"
#undef KVCTS_KERNEL
};
#define KVCTS_KERNEL(K) baseline::K,
constexpr cpu_target_table baseline_table = {
    "baseline",
#include "optimized/kernels.def"
};
#undef KVCTS_KERNEL
#ifdef KVCTS_X86_TARGETS
#define KVCTS_KERNEL(K) avx2::K,
constexpr cpu_target_table avx2_table = {
    "avx2",
#include "optimized/kernels.def"
};
#undef KVCTS_KERNEL
#define KVCTS_KERNEL(K) avx512::K,
constexpr cpu_target_table avx512_table = {
    "avx512",
#include "optimized/kernels.def"
};
#undef KVCTS_KERNEL
#endif

// Those this build knows, the widest first.
constexpr const cpu_target_table* built_targets[] = {
#ifdef KVCTS_X86_TARGETS
    &avx512_table, &avx2_table,
#endif
    &baseline_table};

const cpu_target_table* best_target() {
  for (const cpu_target_table* target : built_targets) {
    if (machine_has(target->name)) return target;
  }
  return &baseline_table;
}

std::atomic<const cpu_target_table*>& chosen_target() {
  static std::atomic<const cpu_target_table*> chosen = best_target();
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

template <class Arguments>
void run_rows(rows_function<Arguments> kernel, const Arguments& a, profile p, std::int64_t rows,
              std::int64_t row_bytes, int threads) {
  in_parts(rows, row_bytes, threads,
           [&](std::int64_t first, std::int64_t last) { kernel(a, p, first, last); });
}

}  // namespace

bool cpu_supports(std::string_view kernel) {
#define KVCTS_KERNEL(K) \
  if (kernel == #K) return true;
#include "optimized/kernels.def"
#undef KVCTS_KERNEL
  return false;
}

std::string cpu_target() { return chosen_target().load()->name; }

void set_cpu_target(std::string_view target) {
  std::string names;
  for (const cpu_target_table* built : built_targets) {
    if (!machine_has(built->name)) continue;
    if (target == built->name) {
      chosen_target() = built;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(built->name);
  }
  throw input_error("CPU target '" + std::string(target) + "' is not there; this machine has " +
                    names);
}

void run_cpu(const call& c, profile p, int threads) {
  const cpu_target_table& target = *chosen_target().load();
#define KVCTS_KERNEL(K)                                                      \
  if (c.kernel == #K) {                                                      \
    const K##_arguments a = K##_of(c);                                       \
    return run_rows(target.K, a, p, K##_rows(a), K##_row_bytes(a), threads); \
  }
#include "optimized/kernels.def"
#undef KVCTS_KERNEL
  throw input_error("candidate cpu has no kernel '" + c.kernel + "'");
}

}  // namespace kvcts
