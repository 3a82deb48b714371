// Shards: a run's work cut into N parts, each of which any machine finds by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvcts {

struct shard {
  int index = 1, count = 1;  // "2/4" is the second of four
  bool is_whole() const { return count == 1; }
};
constexpr int most_shards = 100000;

std::string text_of(const shard& s);
// "I/N", 1-based. Throws input_error.
shard parse_shard(std::string_view text);

struct shard_choice {
  shard part;
  std::string notice;  // one line for the user; empty: nothing to say
};
// Gives the value of an environment variable, or nullptr.
using environment_lookup = std::function<const char*(const char*)>;
// What --shard says (empty: not given), else GTEST_SHARD_INDEX of GTEST_TOTAL_SHARDS, else the
// task of a Slurm array, else the whole. Throws input_error.
shard_choice choose_shard(const std::string& option, const environment_lookup& variable);
// The same with this process's environment; prints the notice on standard error.
shard shard_of_process(const std::string& option);

// For each item the shard (1-based) that it belongs to. The dearest item goes first, each to the
// shard that has least to do; equal ones in their order. Integers, so that all machines agree.
std::vector<int> partition(const std::vector<std::uint64_t>& costs, int shards);
// Numbers of the items of one shard, rising.
std::vector<std::size_t> items_of(const shard& part, const std::vector<std::uint64_t>& costs);

// Which shard a file holds.
struct named_shard {
  int index = 0;
  std::string path;
};
// Throws input_error where one of `count` shards is missing or there twice.
void check_shards(const std::vector<named_shard>& there, int count);

}  // namespace kvcts
