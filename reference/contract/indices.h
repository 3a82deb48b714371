// Checks of contents that several kernels share. Each throws input_error that names kernel,
// argument and element.
#pragma once

#include <string>
#include <string_view>

#include "reference/layout/tensor.h"

namespace kvcts {

// Throws input_error "<kernel>: <argument>: <message>".
[[noreturn]] void reject(const call& c, std::string_view argument, const std::string& message);

// Element i of a 1-D argument, or [i, j] of a 2-D one.
std::int64_t integer_at(const tensor_view& v, std::int64_t i);
std::int64_t integer_at(const tensor_view& v, std::int64_t i, std::int64_t j);

// No slot of `mapping` (i64, 1-D) is past the pages of `cache`.
void check_slots(const call& c, std::string_view mapping, std::string_view cache,
                 std::int64_t block_size);

}  // namespace kvcts
