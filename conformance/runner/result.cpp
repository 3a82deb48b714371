#include "conformance/runner/result.h"

#include <algorithm>
#include <string>

#include "common/patterns.h"

namespace kvcts {

bool is_waivable(const case_result& c) {
  return c.what == outcome::failed && c.bytes_different != 0 && c.message.empty();
}

bool is_named(const std::string& kernel, const std::string& cases, const std::string& of_kernel,
              const std::string& name) {
  return kernel == of_kernel && matches_pattern(cases, name);
}

std::vector<std::string> text_of(const diagnosis& d) {
  const std::string where = "diagnosis of " + d.kernel + " (" + d.name + "): ";
  if (d.bytes_different == 0) {
    return {where + "only bytes beside the results differ, which no rule of the kernel writes"};
  }
  if (d.explanations.empty()) {
    return {where + "no fault of the catalogue explains the bytes (docs/faults.md)"};
  }
  std::vector<std::string> lines;
  for (const explanation& e : d.explanations) {
    std::string names, texts;
    for (std::size_t i = 0; i < e.faults.size(); ++i) {
      names += (i == 0 ? "" : " with ") + e.faults[i];
      texts += (i == 0 ? "" : "; ") + e.texts[i];
    }
    const std::string bytes = std::to_string(d.bytes_different) + " differing bytes";
    if (e.complete) {
      lines.push_back((lines.empty() ? where : "  or ") + names + " explains all " + bytes +
                      " of the results: " + texts);
      continue;
    }
    // Rounded down: 100% is said of complete ones only.
    const std::string share = std::to_string(static_cast<int>(e.share * 100)) + "%";
    lines.push_back(where + "no fault of the catalogue explains the " + bytes +
                    " (docs/faults.md)");
    lines.push_back("  " + names + " is the nearest, but agrees in " + share +
                    " of the bytes that it or the candidate changes: " + texts);
  }
  return lines;
}

int run_result::exit_status(bool require_full) const {
  bool ran = false, failed = false, broke = false, all = kernels_claimed >= kernels_total;
  for (const case_result& c : cases) {
    ran = ran || c.what != outcome::unsupported;
    all = all && c.what != outcome::unsupported;
    failed = failed || c.what == outcome::failed;
    broke = broke || c.what == outcome::crashed || c.what == outcome::timed_out;
  }
  for (const sweep_result& s : sweeps) {
    ran = true;
    failed = failed || s.mismatches != 0;
  }
  if (broke) return 3;
  // Nothing supported does not conform.
  if (failed || (!ran && shards == 1)) return 1;
  return require_full && !all ? 1 : 0;
}

}  // namespace kvcts
