#include "conformance/runner/result.h"

#include <algorithm>

namespace kvcts {

int run_result::exit_status(bool require_full) const {
  bool ran = false, failed = false, broke = false, all = kernels_claimed >= kernels_total;
  for (const case_result& c : cases) {
    ran = ran || c.what != outcome::unsupported;
    all = all && c.what != outcome::unsupported;
    failed = failed || c.what == outcome::failed;
    broke = broke || c.what == outcome::crashed || c.what == outcome::timed_out;
  }
  if (broke) return 3;
  // Nothing supported does not conform.
  if (failed || !ran) return 1;
  return require_full && !all ? 1 : 0;
}

}  // namespace kvcts
