#include "conformance/runner/vector_check.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "conformance/compare/compare.h"
#include "conformance/runner/oracle.h"
#include "reference/kernels/kernels.h"
#include "vectors/file.h"

namespace kvcts {

vector_check check_vectors(const std::string& path, const kernel_filter& kernels, int threads) {
  const vector_file file(path);
  const profile p = profile_from_name(file.info().profile);
  std::map<std::string, vector_check::row> rows;
  std::vector<vector_file::entry> entries;
  for (const vector_file::entry& entry : file.cases()) {
    if (!kernels.matches(entry.kernel)) continue;
    vector_check::row& row = rows[entry.kernel];
    row.kernel = entry.kernel;
    row.implemented = reference_of(entry.kernel) != nullptr;
    ++row.cases;
    if (row.implemented) entries.push_back(entry);
  }
  vector_check found;
  std::mutex guard;
  for_each_parallel(entries.size(), threads, [&](std::size_t i) {
    test_case c = file.read(entries[i]);
    const kernel_contract& contract = contract_of(c.kernel);
    const std::vector<buffer> recomputed =
        expected_results(contract, c.attributes, c.inputs, canary, rules_for(p), c.expected);
    std::vector<buffer> none;
    const call context = make_call(c.kernel, c.attributes, c.inputs, none);
    const comparison compared =
        compare_buffers(contract, context, check(contract, context, false), c.expected, recomputed);
    const std::lock_guard<std::mutex> hold(guard);
    vector_check::row& row = rows[c.kernel];
    row.compared += compared.compared;
    row.different += compared.different;
    if (compared.different == 0) return;
    case_result failure;
    failure.kernel = c.kernel;
    failure.name = c.name;
    failure.flags = c.flags;
    failure.source = path;
    failure.what = outcome::failed;
    failure.bytes_compared = compared.compared;
    failure.bytes_different = compared.different;
    failure.places = compared.places;
    failure.replay = "kvcts run --candidate reference --vectors '" + path + "' --kernels " +
                     c.kernel + " --case '" + c.name + "'";
    found.failures.push_back(std::move(failure));
  });
  std::sort(found.failures.begin(), found.failures.end(),
            [](const case_result& a, const case_result& b) {
              return std::tie(a.kernel, a.name) < std::tie(b.kernel, b.name);
            });
  for (auto& [kernel, row] : rows) found.rows.push_back(std::move(row));
  return found;
}

std::string provenance_of(const suite_info& info) {
  // Our own writer's name.
  return info.producer.rfind("kvcts", 0) == 0 ? "derived" : "captured";
}

}  // namespace kvcts
