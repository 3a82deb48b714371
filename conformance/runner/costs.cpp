#include "conformance/runner/costs.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "reference/layout/tensor.h"
#include "vectors/sha256.h"

namespace kvcts {
namespace {

struct kernel_cost {
  std::string_view kernel;
  std::uint64_t ps_a_byte, ns_a_case, ordinary_bytes;
};
constexpr kernel_cost kernel_costs[] = {
#define KERNEL(kernel, ps, ns, bytes) {kernel, ps, ns, bytes},
#define LARGE(kernel, name, bytes)
#include "conformance/runner/case_costs.def"
#undef KERNEL
#undef LARGE
};

struct large_case {
  std::string_view kernel, name;
  std::uint64_t bytes;
};
constexpr large_case large_cases[] = {
#define KERNEL(kernel, ps, ns, bytes)
#define LARGE(kernel, name, bytes) {kernel, name, bytes},
#include "conformance/runner/case_costs.def"
#undef KERNEL
#undef LARGE
};

// A kernel that nobody has measured yet.
constexpr kernel_cost unknown_kernel{"", 60000, 100000, 65536};

struct sweep_cost {
  std::string_view sweep;
  std::uint64_t ps_an_input;
};
constexpr sweep_cost sweep_costs[] = {
#define SWEEP(name, ps) {name, ps},
#include "conformance/runner/sweep_costs.def"
#undef SWEEP
};
constexpr std::uint64_t unknown_sweep_ps = 10000;

struct drawn_cost {
  std::string_view kernel;
  std::uint64_t ns_a_case;
};
constexpr drawn_cost drawn_costs[] = {
#define DRAWN(kernel, ns) {kernel, ns},
#include "conformance/runner/drawn_costs.def"
#undef DRAWN
};

using case_key = std::pair<std::string_view, std::string_view>;

std::map<case_key, std::uint64_t> large_table() {
  std::map<case_key, std::uint64_t> table;
  for (const large_case& c : large_cases) table.emplace(case_key(c.kernel, c.name), c.bytes);
  return table;
}

void put(sha256_stream& to, const std::string& text) {
  to.add(text.data(), text.size());
  to.add("\n", 1);
}

}  // namespace

std::uint64_t cost_of(std::string_view kernel, std::string_view name) {
  static const std::map<case_key, std::uint64_t> large = large_table();
  const kernel_cost* of = std::find_if(std::begin(kernel_costs), std::end(kernel_costs),
                                       [&](const kernel_cost& k) { return k.kernel == kernel; });
  if (of == std::end(kernel_costs)) of = &unknown_kernel;
  const auto found = large.find({kernel, name});
  const std::uint64_t bytes = found == large.end() ? of->ordinary_bytes : found->second;
  return of->ns_a_case + bytes * of->ps_a_byte / 1000 + 1;
}

std::uint64_t cost_of_inputs(std::string_view sweep, std::uint64_t inputs) {
  const auto* of = std::find_if(std::begin(sweep_costs), std::end(sweep_costs),
                                [&](const sweep_cost& c) { return c.sweep == sweep; });
  const bool known = of != std::end(sweep_costs);
  // 2^24 inputs of half a second each stay below 2^63.
  return inputs * (known ? of->ps_an_input : unknown_sweep_ps) / 1000 + 1;
}

std::uint64_t cost_of_drawn(std::string_view kernel) {
  const auto* of = std::find_if(std::begin(drawn_costs), std::end(drawn_costs),
                                [&](const drawn_cost& c) { return c.kernel == kernel; });
  return of == std::end(drawn_costs) ? 0 : of->ns_a_case;
}

void keep_shard(std::vector<planned_case>& plan, const shard& part) {
  std::vector<std::uint64_t> costs;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    plan[i].position = i;
    costs.push_back(cost_of(plan[i].kernel, plan[i].name));
  }
  if (part.is_whole()) return;
  std::vector<planned_case> kept;
  for (const std::size_t i : items_of(part, costs)) kept.push_back(std::move(plan[i]));
  plan = std::move(kept);
}

std::string plan_digest(const std::vector<planned_case>& whole, const run_options& options) {
  sha256_stream to;
  put(to, "kvcts plan 1, version " KVCTS_VERSION);
  put(to, std::string(name_of(options.rules)));
  put(to, std::string(name_of(options.up_to)));
  put(to, std::to_string(options.seed));
  put(to, std::to_string(options.repeat));
  std::set<std::string> files;
  for (const planned_case& c : whole) {
    put(to, c.kernel);
    put(to, c.name);
    put(to, std::string(name_of(c.rules)));
    put(to, c.source);
    if (c.source != "built-in" && files.insert(c.source).second) put(to, file_digest(c.source));
  }
  return to.finish();
}

std::string file_digest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  sha256_stream to;
  std::array<char, 65536> piece{};
  while (file) {
    file.read(piece.data(), piece.size());
    to.add(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) throw input_error(path + " cannot be read: check that it is there");
  return to.finish();
}

std::string program_digest() { return file_digest("/proc/self/exe"); }

}  // namespace kvcts
