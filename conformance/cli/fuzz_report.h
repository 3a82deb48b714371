// What `kvcts fuzz --json` writes, and `kvcts report merge` of its shards.
#pragma once

#include <string>
#include <vector>

#include "conformance/candidate/candidate.h"
#include "fuzz/fuzz.h"

namespace kvcts {

// Both throw input_error where the file cannot be written.
void check_fuzz_path(const std::string& path);
void write_fuzz(const std::string& path, const fuzz_report& report, const fuzz_options& options,
                const candidate& subject);

bool is_fuzz_file(const std::string& path);
// Writes fuzz.json into the folder. The exit status is that of a run of all.
int merge_fuzz(const std::vector<std::string>& paths, const std::string& folder);

}  // namespace kvcts
