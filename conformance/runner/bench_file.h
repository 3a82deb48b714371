// What `kvcts bench --json` recorded, as the speed of a report.
#pragma once

#include <string>

#include "conformance/runner/result.h"

namespace kvcts {

// Throws input_error: cannot be read, or is no such file.
speed_table read_bench(const std::string& path);

}  // namespace kvcts
