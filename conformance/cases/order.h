// Rows on which the order of a sum of squares shows.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/cases/draw.h"

namespace kvcts {

// Powers of two whose squares sum to n and a little more; a few hold nearly all of the sum, the
// rest vanishes or not by the order in which it is added. They lie in random lanes.
struct order_row {
  std::vector<float> magnitudes;  // [n]
  double root;                    // of the mean of their squares, within 2^-30
};
order_row draw_order_row(draw& from, std::int64_t n);

// f32 bits of a weight that carries a normalized element within a few ulp of `product`.
std::uint32_t weight_near(draw& from, double product, const order_row& row, std::size_t element);

}  // namespace kvcts
