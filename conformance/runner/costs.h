// What a case, a piece of a sweep or a drawn case costs, so that shards take equally long. Measured
// once (costs.py), the same numbers on every machine: a shard is found without asking the others.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/runner/run.h"
#include "conformance/runner/shard.h"

namespace kvcts {

// Nanoseconds, at least 1. A case that the table does not name costs as its kernel's ordinary ones.
std::uint64_t cost_of(std::string_view kernel, std::string_view name);
// Of inputs of a sweep of `kvcts exhaustive`.
std::uint64_t cost_of_inputs(std::string_view sweep, std::uint64_t inputs);
// Of a case that `kvcts fuzz` draws, with its relations; 0 where the table does not name the
// kernel.
std::uint64_t cost_of_drawn(std::string_view kernel);

// Numbers the cases of a whole plan and leaves one shard's.
void keep_shard(std::vector<planned_case>& plan, const shard& part);

// Identifies a whole plan: program version, profile, level, seed, which cases in which order, and
// the content of vector files. Shards of one plan have it in common.
std::string plan_digest(const std::vector<planned_case>& whole, const run_options& options);
// SHA-256 of a file. Throws input_error.
std::string file_digest(const std::string& path);
// Of the running program: the built-in candidates and the reference are in it.
std::string program_digest();

}  // namespace kvcts
