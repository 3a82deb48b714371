#include "conformance/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace kvcts {
namespace {

constexpr double nothing_but_noise_db = -10000;  // below all ratios of sums of squares

double ratio_db(double signal, double noise) {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return signal == 0 ? nothing_but_noise_db : 10 * std::log10(signal / noise);
}

// The lower one of two in the middle.
double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>((of.size() - 1) / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

}  // namespace

void error_sums::add(const std::vector<double>& exact, const std::vector<stored_number>& got) {
  double signal = 0;
  double noise = 0;
  const std::uint64_t before = values_;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(exact[i]) || !std::isfinite(got[i].value)) continue;
    const double error = got[i].value - exact[i];
    ++values_;
    largest_ += got[i].largest;
    signal += exact[i] * exact[i];
    noise += error * error;
    if (!got[i].subnormal && exact[i] != 0) {
      worst_relative_ = std::max(worst_relative_, std::abs(error / exact[i]));
    }
  }
  if (values_ != before) row_db_.push_back(ratio_db(signal, noise));
}

accuracy_row error_sums::result() const {
  accuracy_row row;
  row.values = values_;
  row.sqnr_db = median(row_db_);
  row.worst_relative = worst_relative_;
  row.saturated = static_cast<double>(largest_) / static_cast<double>(values_);
  return row;
}

std::vector<accuracy_row> rows_of_kernels(const std::vector<case_result>& cases) {
  std::map<std::pair<std::string, std::string>, std::vector<const accuracy_row*>> of_argument;
  for (const case_result& c : cases) {
    for (const accuracy_row& row : c.accuracy)
      of_argument[{c.kernel, row.argument}].push_back(&row);
  }
  std::vector<accuracy_row> rows;
  for (auto& [key, all] : of_argument) {
    accuracy_row made;
    std::tie(made.kernel, made.argument) = key;
    double saturated = 0;
    std::vector<double> of_cases;
    std::vector<double> worst;
    for (const accuracy_row* row : all) {
      of_cases.push_back(row->sqnr_db);
      made.values += row->values;
      worst.push_back(row->worst_relative);
      saturated += row->saturated * static_cast<double>(row->values);
    }
    made.saturated = saturated / static_cast<double>(made.values);
    made.sqnr_db = median(std::move(of_cases));
    made.worst_relative = median(std::move(worst));
    rows.push_back(std::move(made));
  }
  return rows;
}

}  // namespace kvcts
