// What a reader makes of stored elements: their numbers, scales applied.
#pragma once

#include <vector>

#include "reference/layout/paged.h"

namespace kvcts {

struct stored_number {
  double value = 0;        // NaN where the code or its scale is one
  bool subnormal = false;  // the code is zero or subnormal: its relative error has no bound
  bool largest = false;    // the code has the largest magnitude that the kernels store
};

// bf16, f32, and E4M3 and UE8M0 codes.
stored_number stored_at(dtype type, const std::byte* element);
// A nibble, E2M1.
stored_number stored_e2m1(std::uint8_t code);
stored_number scaled(stored_number code, double scale);

// The values of the record in a slot: those with a scale, or, where the record has none, all, times
// `tensor_scale`.
std::vector<stored_number> stored_record(const paged_view& view, const std::byte* storage,
                                         std::int64_t slot, double tensor_scale = 1);

}  // namespace kvcts
