#include "conformance/cases/order.h"

#include <algorithm>

#include "reference/numerics/arithmetic.h"

namespace kvcts {

order_row draw_order_row(draw& from, std::int64_t n) {
  order_row made;
  // 91/64 * 2^k, of even k: its square is just above 2 * 4^k, and that is n.
  std::uint32_t exponent = 127;
  for (std::int64_t square = 2; square < n; square *= 4) ++exponent;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // 8 significant bits: the squares are exact.
    const std::uint32_t small =
        static_cast<std::uint32_t>(from.between(127 - 10, 127 - 6)) << 7 | from.below(128);
    const std::uint32_t large = exponent << 7 | 54;
    made.magnitudes.push_back(float_of((i == 0 ? large : small) << 16));
    const double magnitude = double{made.magnitudes.back()};
    sum += magnitude * magnitude;
  }
  for (std::size_t i = made.magnitudes.size() - 1; i > 0; --i) {
    std::swap(made.magnitudes[i], made.magnitudes[from.below(i + 1)]);
  }
  const double mean = sum / static_cast<double>(n);
  made.root = 1;
  for (int step = 0; step < 6; ++step) made.root = (made.root + mean / made.root) / 2;
  return made;
}

std::uint32_t weight_near(draw& from, double product, const order_row& row, std::size_t element) {
  const double weight = product * row.root / double{row.magnitudes[element]};
  return bits_of(static_cast<float>(weight)) + from.below(7) - 3;
}

}  // namespace kvcts
