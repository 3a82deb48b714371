// The reference kernels by name: scalar, bit-exact, driven by Rules.
#pragma once

#include <string_view>

#include "reference/contract/contract.h"
#include "reference/numerics/rules.h"

namespace kvcts {

// Computes a call that check() has passed, outputs allocated. Reads and writes only through its
// tensors.
using reference_function = void (*)(const call&, const Rules&);
// Null where the kernel is unknown.
reference_function reference_of(std::string_view kernel);

}  // namespace kvcts
