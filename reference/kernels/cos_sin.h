// A row of a cos/sin table.
#pragma once

#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {

// Cosines, then sines, of `position`. A position outside the table, which only a fault asks for,
// takes the nearest row.
std::vector<float> cos_sin_row(const tensor_view& table, std::int64_t position);

}  // namespace kvcts
