#include "conformance/tests/tools.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "conformance/runner/oracle.h"

namespace kvcts::testing_tools {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

scratch::scratch() {
  std::string pattern = (fs::temp_directory_path() / "kvcts-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
  folder_ = pattern;
}

scratch::~scratch() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool scratch::empty() const { return fs::is_empty(folder_); }

bool is_sanitized() { return std::getenv("KVCTS_SANITIZED") != nullptr; }

std::vector<std::string> every_kernel() {
  std::vector<std::string> names;
  for (const kernel_contract* c : contracts()) names.emplace_back(c->name);
  return names;
}

test_case case_named(const std::string& kernel, const std::string& name) {
  for (const case_spec& spec : cases_of(kernel, level::exhaustive, 1)) {
    if (spec.name != name) continue;
    test_case c = spec.build();
    fill_expected(c, profile::nvidia);
    return c;
  }
  throw std::runtime_error("no case " + kernel + "/" + name);
}

buffer& input_of(test_case& c, const std::string& name) {
  for (buffer& b : c.inputs) {
    if (b.name == name) return b;
  }
  throw std::runtime_error("no input " + name);
}

program_result run_program(const std::string& arguments, const std::string& folder) {
  const scratch outputs;
  const std::string out = outputs.path("out"), err = outputs.path("err");
  const std::string command =
      "cd '" + folder + "' && '" KVCTS_PROGRAM "' " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  program_result result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.out = text_of_file(out);
  result.err = text_of_file(err);
  return result;
}

}  // namespace kvcts::testing_tools
