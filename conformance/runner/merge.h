// Joins the reports of shards.
#pragma once

#include <string>
#include <vector>

#include "conformance/runner/result.h"

namespace kvcts {

struct shard_report {
  std::string path;  // for what is said of it
  run_result result;
};

// The report that one whole run would have given, but for times (and hosts, where there were
// several). Throws input_error where the reports are not all shards, once each, of one plan by one
// program on one candidate, or where a case is in none or in two of them.
run_result merge_shards(const std::vector<shard_report>& reports);

}  // namespace kvcts
