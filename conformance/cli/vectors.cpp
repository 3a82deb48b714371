// kvcts vectors generate | inspect | check.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "conformance/cli/commands.h"
#include "conformance/cli/text.h"
#include "conformance/runner/oracle.h"
#include "conformance/runner/reduction_check.h"
#include "conformance/runner/run.h"
#include "conformance/runner/vector_check.h"
#include "reference/kernels/kernels.h"
#include "vectors/file.h"
#include "vectors/version.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

suite generate(const kernel_filter& kernels, level up_to, profile p, std::uint64_t seed,
               int threads) {
  std::vector<planned_case> plan = plan_built_in(kernels, up_to, seed, p);
  std::sort(plan.begin(), plan.end(), [](const planned_case& a, const planned_case& b) {
    return std::tie(a.kernel, a.name) < std::tie(b.kernel, b.name);
  });
  suite made;
  made.info.profile = name_of(p);
  made.info.producer = fmt::format("kvcts {}", KVCTS_VERSION);
  made.info.seed = seed;
  made.cases.resize(plan.size());
  for_each_parallel(plan.size(), threads, [&](std::size_t i) {
    test_case c = plan[i].load();
    if (c.is_sparse()) return;  // its place stays empty
    fill_expected(c, p);
    made.cases[i] = std::move(c);
  });
  made.cases.erase(std::remove_if(made.cases.begin(), made.cases.end(),
                                  [](const test_case& c) { return c.kernel.empty(); }),
                   made.cases.end());
  if (made.cases.size() < plan.size()) {
    fmt::print("left out: {} cases whose caches past 2 GiB are in memory only\n",
               plan.size() - made.cases.size());
  }
  made.info.others["generator_version"] = std::string(KVCTS_VERSION);
  made.info.others["profile_version"] = std::int64_t{profile_version};
  made.info.others["suite_version"] = std::int64_t{suite_version};
  made.info.others["suite_digest"] = digest_of(made);
  return made;
}

}  // namespace

int generate_command(const suite_arguments& arguments, const std::string& output, int threads) {
  const suite made =
      generate(kernel_filter(arguments.kernels), level_from_name(arguments.level.value_or("smoke")),
               profile_from_name(arguments.profile.value_or("nvidia")), arguments.seed, threads);
  write_vectors(output, made);
  fmt::print("{}: {} cases, suite digest {}\n", output, made.cases.size(), digest_of(made));
  return 0;
}

int generate_golden_command(const std::string& folder, int threads) {
  std::map<std::string, std::string> manifest;
  for (const kernel_contract* contract : contracts()) {
    for (const profile p : {profile::nvidia, profile::ieee}) {
      const suite made = generate(kernel_filter(contract->name), level::smoke, p, 1, threads);
      if (made.cases.empty()) continue;
      const std::string name = fmt::format("{}_{}.h5", contract->name, name_of(p));
      write_vectors(folder + "/" + name, made);
      manifest[name] = digest_of(made);
    }
  }
  std::ofstream out(folder + "/MANIFEST");
  for (const auto& [name, digest] : manifest) out << digest << "  " << name << '\n';
  if (!out) throw input_error(folder + "/MANIFEST: cannot be written");
  fmt::print("{}: {} files\n", folder, manifest.size());
  return 0;
}

int inspect_command(const std::string& path) {
  probe_vectors(path);
  if (schema_of(path) != "kvcts-vectors") {
    throw input_error(fmt::format("{}: inspect reads the schema kvcts-vectors, this is {}", path,
                                  schema_of(path)));
  }
  const vector_file file(path);
  fmt::print("{}\nproducer: {}\nprofile: {}, seed {}, {} cases\n", path, file.info().producer,
             file.info().profile, file.info().seed, file.cases().size());
  for (const auto& [name, value] : file.info().others) {
    if (const auto* text = std::get_if<std::string>(&value)) fmt::print("{}: {}\n", name, *text);
    if (const auto* n = std::get_if<std::int64_t>(&value)) fmt::print("{}: {}\n", name, *n);
  }
  for (const vector_file::entry& entry : file.cases()) {
    const test_case c = file.decode(entry);
    fmt::print("{}/{} [{}]\n", c.kernel, c.name, fmt::join(c.flags, ", "));
    const auto print_buffers = [](std::string_view part, const std::vector<buffer>& all) {
      for (const buffer& b : all) {
        fmt::print("  {:<8} {:<24} {:<8} [{}]{}\n", part, b.name, name_of(b.type),
                   fmt::join(b.at.shape, ", "),
                   is_dense(b.at) ? ""
                                  : fmt::format(" strides [{}] offset {}",
                                                fmt::join(b.at.strides, ", "), b.at.offset));
      }
    };
    for (const auto& [name, value] : c.attributes) {
      std::visit([&, &key = name](const auto& v) { fmt::print("  {:<8} {} = {}\n", "", key, v); },
                 value);
    }
    print_buffers("input", c.inputs);
    print_buffers("expected", c.expected);
    print_buffers("actual", c.actual);
  }
  return 0;
}

int check_trees_command(const std::string& path) {
  bool differs = false;
  for (const reduction_check::row& r : check_reduction_trees(path).rows) {
    fmt::print("{:<12} {:>4} rows  {:>10} values compared  {:>8} differ\n", r.group, r.rows,
               grouped(r.compared), grouped(r.different));
    if (r.different != 0) fmt::print("  {}\n", r.first);
    differs = differs || r.different != 0;
  }
  return differs ? 1 : 0;
}

int check_command(const std::string& path, const std::string& patterns, int threads) {
  probe_vectors(path);
  const std::string schema = schema_of(path);
  if (schema == "kvcts-reduction-trees") return check_trees_command(path);
  const kernel_filter kernels(patterns);
  const vector_check check = check_vectors(path, kernels, threads);
  for (const case_result& c : check.failures) print_failure(c);
  bool differs = false;
  std::string missing;
  for (const vector_check::row& r : check.rows) {
    if (r.implemented) {
      fmt::print("{:<40} {:>4} cases  {:>14} bytes compared  {:>10} differ\n", r.kernel, r.cases,
                 grouped(r.compared), grouped(r.different));
    } else {
      fmt::print("{:<40} {:>4} cases  not implemented in this version\n", r.kernel, r.cases);
      missing += (missing.empty() ? "" : ", ") + r.kernel;
    }
    differs = differs || r.different != 0;
  }
  if (check.rows.empty()) {
    throw input_error(fmt::format("{}: holds no case of the kernels chosen", path));
  }
  if (!missing.empty()) {
    throw input_error(fmt::format(
        "{}: not checked, since not implemented in this version: {}; choose others with "
        "--kernels",
        path, missing));
  }
  return differs ? 1 : 0;
}

}  // namespace kvcts
