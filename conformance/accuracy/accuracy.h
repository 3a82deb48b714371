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

// Sums over the values of one argument of one case. Pairs with a number that is not finite are
// passed over.
class error_sums {
 public:
  void add(double exact, const stored_number& got);
  void add(const std::vector<double>& exact, const std::vector<stored_number>& got);
  bool empty() const { return values_ == 0; }
  // Kernel and argument are left open.
  accuracy_row result() const;

 private:
  std::uint64_t values_ = 0, largest_ = 0;
  double signal_ = 0, noise_ = 0;  // sums of squares
  double worst_relative_ = 0;
};

// Of one call: `before` has its inputs and the first content of updated arguments, `after` what the
// candidate left, and the inputs too. A row an argument that holds rounded numbers.
std::vector<accuracy_row> accuracy_of(const call& before, const call& after, const bindings& names);

// Rows of whole kernels, sorted: of the SQNR the median by values, so that
// cases at the edges of the formats don't hide what ordinary data gets; the worst relative error
// and the share of saturated values are those of all cases.
std::vector<accuracy_row> rows_of_kernels(const std::vector<case_result>& cases);

}  // namespace kvcts
