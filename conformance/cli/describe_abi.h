// What a call of kvcts_candidate.h holds for a kernel, as text.
#pragma once

#include <string>

#include "reference/contract/contract.h"

namespace kvcts {

std::string interface_of(const kernel_contract& contract);

}  // namespace kvcts
