#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/replaced_file.h"
#include "conformance/runner/evidence.h"

namespace kvcts {
namespace {

using json = nlohmann::ordered_json;
constexpr std::string_view schema = "kvcts-gpu-evidence";

void refuse_unwritten(const std::string& path, const std::string& why) {
  if (why.empty()) return;
  throw input_error(
      fmt::format("{}: cannot be written ({}), choose another --evidence", path, why));
}

}  // namespace

evidence read_evidence(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw input_error(fmt::format("{}: cannot be read", path));
  return parse_evidence({std::istreambuf_iterator<char>(in), {}}, path);
}

evidence parse_evidence(const std::string& text, const std::string& path) {
  try {
    const json from = json::parse(text);
    if (from.at("schema") != schema || from.at("schema_version") != 1) {
      throw input_error(fmt::format("{}: is not GPU evidence of schema version 1", path));
    }
    evidence e;
    e.candidate = from.at("candidate");
    e.device = from.at("device");
    e.driver = from.at("driver");
    e.compiler = from.at("compiler");
    e.time = from.at("time");
    e.version = from.at("version");
    e.sources = from.at("kernel_sources");
    e.profile = from.at("profile");
    e.level = from.at("level");
    e.seed = from.at("seed");
    for (const json& one : from.at("cases")) {
      evidence_case c;
      c.kernel = one.at("kernel");
      c.name = one.at("name");
      c.source = one.at("source");
      c.inputs = one.at("inputs");
      for (const auto& [argument, digest] : one.at("outputs").items()) c.outputs[argument] = digest;
      e.cases.push_back(std::move(c));
    }
    return e;
  } catch (const nlohmann::json::exception& error) {
    throw input_error(fmt::format("{}: is not GPU evidence ({})", path, error.what()));
  }
}

bool is_evidence_file(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  return name.extension() == ".json" && name.string().rfind("bench-", 0) != 0;
}

void check_evidence_path(const std::string& path) {
  refuse_unwritten(path, replaced_file(path).write(""));
}

void write_evidence(const std::string& path, const evidence& e) {
  json to;
  to["schema"] = schema;
  to["schema_version"] = 1;
  to["candidate"] = e.candidate;
  to["device"] = e.device;
  to["driver"] = e.driver;
  to["compiler"] = e.compiler;
  to["time"] = e.time;
  to["version"] = e.version;
  to["kernel_sources"] = e.sources;
  to["profile"] = e.profile;
  to["level"] = e.level;
  to["seed"] = e.seed;
  to["cases"] = json::array();
  for (const evidence_case& c : e.cases) {
    to["cases"].push_back({{"kernel", c.kernel},
                           {"name", c.name},
                           {"source", c.source},
                           {"inputs", c.inputs},
                           {"outputs", c.outputs}});
  }
  refuse_unwritten(path, replace_file(path, to.dump(1) + "\n"));
}

}  // namespace kvcts
