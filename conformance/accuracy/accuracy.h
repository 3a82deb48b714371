// How far what a kernel stored is from double-precision mathematics: the numbers that a reader gets
// back against the operation's own formula, computed from the inputs without any rounding between.
// It tells what a format costs and shows a candidate that is off; the verdict never depends on it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/accuracy/stored.h"
#include "conformance/runner/result.h"
#include "reference/contract/contract.h"

namespace kvcts {

// False for the index kernels and layouts, which round nothing.
bool has_accuracy(std::string_view kernel);

// Sums over the rows of one argument of one case. Pairs with a number that is not finite are passed
// over.
class error_sums {
 public:
  // One row: a token's, a head's, a record's. `got` may be shorter.
  void add(const std::vector<double>& exact, const std::vector<stored_number>& got);
  bool empty() const { return values_ == 0; }
  // Kernel and argument are left open. The SQNR is the median of the rows': one row of huge
  // numbers would hide all others in a common sum.
  accuracy_row result() const;

 private:
  std::uint64_t values_ = 0, largest_ = 0;
  double worst_relative_ = 0;
  std::vector<double> row_db_;
};

// Of one call: `before` has its inputs and the first content of updated arguments, `after` what the
// candidate left, and the inputs too. A row an argument that holds
// rounded numbers; of a paged cache "k_cache (v4)".
std::vector<accuracy_row> accuracy_of(const call& before, const call& after, const bindings& names);

// Rows of whole kernels, sorted: the medians of the cases' SQNR and worst relative error, so that
// cases at the edges of a format do not hide what ordinary data gets; the share of saturated values
// is that of all.
std::vector<accuracy_row> rows_of_kernels(const std::vector<case_result>& cases);

}  // namespace kvcts
