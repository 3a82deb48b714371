#include "conformance/runner/bench_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

using nlohmann::json;

speed_row cuda_row(const json& from) {
  speed_row row;
  row.time_us = from.at("time_us").get<double>();
  row.share_of_copy = from.at("share_of_copy").get<double>();
  row.target = from.at("target").get<double>();
  return row;
}

// GB/s instead of times, and a target that may be of another ratio.
speed_row cpu_row(const json& from) {
  speed_row row;
  row.time_us = from.at("bytes").get<double>() / from.at("cpu_gbs").get<double>() / 1e3;
  row.share_of_copy = from.at("share_of_memcpy").get<double>();
  if (from.at("target_of") == "share_of_memcpy") row.target = from.at("target").get<double>();
  return row;
}

}  // namespace

speed_table read_bench(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw input_error(fmt::format("{}: cannot be read", path));
  try {
    const json from = json::parse(in);
    speed_table table;
    table.candidate = from.at("candidate").get<std::string>();
    table.device = from.at("device").get<std::string>();
    table.source = path;
    if (from.contains("copy_tb_s")) table.copy_tb_s = from.at("copy_tb_s").get<double>();
    for (const json& one : from.at("rows")) {
      const bool cuda = one.contains("time_us");
      speed_row row = cuda ? cuda_row(one) : cpu_row(one);
      row.op = one.at("op").get<std::string>();
      row.size = one.at("size").get<std::string>();
      row.bytes = one.at("bytes").get<std::uint64_t>();
      if (!cuda) {
        table.copy_tb_s = std::max(table.copy_tb_s, one.at("memcpy_gbs").get<double>() / 1e3);
      }
      table.rows.push_back(std::move(row));
    }
    return table;
  } catch (const json::exception& error) {
    throw input_error(
        fmt::format("{}: is not what kvcts bench --json writes ({})", path, error.what()));
  }
}

}  // namespace kvcts
