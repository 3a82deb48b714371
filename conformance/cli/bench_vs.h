// The second candidate of `kvcts bench`: a library from outside, and how its rows read.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "conformance/cli/commands.h"
#include "optimized/bench.h"

namespace kvcts {

class library_in_process;

// Null where --vs names none. Throws input_error for what cannot stand beside the candidate.
std::unique_ptr<library_in_process> vs_library(const bench_arguments& a);
// Name, version, path and digest, into what --json writes.
void put_vs_library(const library_in_process& library, nlohmann::ordered_json& to);

// "same bytes", "differs: y", "not claimed", "error: no memory left", ...
std::string vs_verdict(const vs_row& row);
// Columns behind a row, each with a blank before it; `rate` is "us" or "GB/s". Empty without one.
std::string vs_heading(const std::string& name, const char* rate);
std::string vs_columns(const std::optional<vs_row>& row, double rate);
void put_vs(const std::optional<vs_row>& row, nlohmann::ordered_json& to);

}  // namespace kvcts
