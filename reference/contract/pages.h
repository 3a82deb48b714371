// A page view of a checked call, ready for locate().
#pragma once

#include <optional>

#include "reference/contract/contract.h"
#include "reference/layout/paged.h"

namespace kvcts {

// Empty where the argument is absent or no page view. `names` are those that check() gave.
std::optional<paged_view> paged_view_of(const kernel_contract& contract, const call& context,
                                        const bindings& names, std::string_view argument);

}  // namespace kvcts
