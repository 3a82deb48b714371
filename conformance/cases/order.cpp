#include "conformance/cases/order.h"

#include <algorithm>

#include "reference/numerics/arithmetic.h"

namespace kvcts {

order_row draw_order_row(draw& from, std::int64_t n) {
  order_row made;
  // n/8 eight times, or n/2 once and n/8 four times.
  std::uint32_t exponent = 127;
  for (std::int64_t square = 1; square < n / 8; square *= 4) ++exponent;
  const bool with_half = from.one_in(2);
  const std::int64_t large = with_half ? 5 : 8;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto small = static_cast<std::uint32_t>(from.between(127 - 12, 127 - 8));
    const std::uint32_t field = with_half && i == 0 ? exponent + 1 : i < large ? exponent : small;
    made.magnitudes.push_back(float_of(field << 23));
    const double magnitude = double{made.magnitudes.back()};
    sum += magnitude * magnitude;  // exact
  }
  for (std::size_t i = made.magnitudes.size() - 1; i > 0; --i) {
    std::swap(made.magnitudes[i], made.magnitudes[from.below(i + 1)]);
  }
  // sqrt(1 + e) of a small e.
  const double e = sum / static_cast<double>(n) - 1;
  made.root = 1 + e / 2 - e * e / 8;
  return made;
}

std::uint32_t weight_near(draw& from, double product, const order_row& row, std::size_t element) {
  const double weight = product * row.root / double{row.magnitudes[element]};
  return bits_of(static_cast<float>(weight)) + from.below(7) - 3;
}

}  // namespace kvcts
