#include "conformance/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace kvcts {
namespace {

constexpr double nothing_but_noise_db = -10000;  // below all ratios of sums of squares

}  // namespace

void error_sums::add(double exact, const stored_number& got) {
  if (!std::isfinite(exact) || !std::isfinite(got.value)) return;
  const double error = got.value - exact;
  ++values_;
  largest_ += got.largest;
  signal_ += exact * exact;
  noise_ += error * error;
  if (!got.subnormal && exact != 0) {
    worst_relative_ = std::max(worst_relative_, std::abs(error / exact));
  }
}

void error_sums::add(const std::vector<double>& exact, const std::vector<stored_number>& got) {
  for (std::size_t i = 0; i < exact.size(); ++i) add(exact[i], got[i]);
}

accuracy_row error_sums::result() const {
  accuracy_row row;
  row.values = values_;
  row.sqnr_db = noise_ == 0    ? std::numeric_limits<double>::infinity()
                : signal_ == 0 ? nothing_but_noise_db
                               : 10 * std::log10(signal_ / noise_);
  row.worst_relative = worst_relative_;
  row.saturated = values_ == 0 ? 0 : static_cast<double>(largest_) / static_cast<double>(values_);
  return row;
}

std::vector<accuracy_row> rows_of_kernels(const std::vector<case_result>& cases) {
  std::map<std::pair<std::string, std::string>, std::vector<const accuracy_row*>> of_argument;
  for (const case_result& c : cases) {
    for (const accuracy_row& row : c.accuracy) of_argument[{c.kernel, row.argument}].push_back(&row);
  }
  std::vector<accuracy_row> rows;
  for (auto& [key, all] : of_argument) {
    std::stable_sort(all.begin(), all.end(), [](const accuracy_row* a, const accuracy_row* b) {
      return a->sqnr_db < b->sqnr_db;
    });
    accuracy_row made;
    std::tie(made.kernel, made.argument) = key;
    double saturated = 0;
    for (const accuracy_row* row : all) {
      made.values += row->values;
      made.worst_relative = std::max(made.worst_relative, row->worst_relative);
      saturated += row->saturated * static_cast<double>(row->values);
    }
    made.saturated = saturated / static_cast<double>(made.values);
    std::uint64_t below = 0;
    for (const accuracy_row* row : all) {
      made.sqnr_db = row->sqnr_db;
      below += row->values;
      if (2 * below >= made.values) break;
    }
    rows.push_back(std::move(made));
  }
  return rows;
}

}  // namespace kvcts
