// Inline SVG of report.html.
#pragma once

#include <string>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

// Strips to scale, marks that stand out above them, and a key in words.
std::string drawn(const buffer_picture& picture);
// SQNR of each kernel's outputs, the span of their cases behind it.
std::string accuracy_plot(const run_result& result);

}  // namespace kvcts
