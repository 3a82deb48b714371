// kvcts init-candidate DIR.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "conformance/cli/commands.h"
#include "conformance/cli/embedded.h"
#include "reference/contract/contract.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view example_kernel = "fused_layout";

std::string with(std::string text, std::string_view name, std::string_view value) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    text.replace(at, name.size(), value);
    at += value.size();
  }
  return text;
}

// A line a kernel, as the template's comment goes on.
std::string other_kernels() {
  std::string text;
  for (const kernel_contract* c : contracts()) {
    if (c->name == example_kernel) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "\n *   ", c->name);
  }
  return text;
}

}  // namespace

int init_candidate_command(const std::string& folder, const std::string& language) {
  const bool cpp = language == "c++" || language == "cpp";
  if (!cpp && language != "c") {
    throw input_error(fmt::format("unknown language '{}': the languages are c, c++", language));
  }
  std::error_code error;
  if (fs::exists(folder, error) && (!fs::is_directory(folder, error) || !fs::is_empty(folder))) {
    throw input_error(folder + " is there and not an empty folder: name a new one");
  }
  fs::create_directories(folder, error);
  if (error) throw input_error(folder + " cannot be created: " + error.message());

  const std::string source = cpp ? "candidate.cpp" : "candidate.c";
  const std::pair<std::string, std::string> files[] = {
      {"kvcts_candidate.h", embedded_header},
      {"CMakeLists.txt",
       with(with(embedded_project, "KVCTS_LANGUAGE", cpp ? "CXX" : "C"), "KVCTS_SOURCE", source)},
      {source, with(embedded_source, "KVCTS_OTHER_KERNELS", other_kernels())},
  };
  for (const auto& [name, text] : files) {
    std::ofstream out(fs::path(folder) / name, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw input_error((fs::path(folder) / name).string() + " cannot be written");
  }
  fmt::print(
      "{0}: kvcts_candidate.h, CMakeLists.txt, {1}\nnext:\n"
      "  cmake -S {0} -B {0}/build && cmake --build {0}/build\n"
      "  kvcts run --candidate {0}/build/libcandidate.so\n",
      folder, source);
  return 0;
}

}  // namespace kvcts
