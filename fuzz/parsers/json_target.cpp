// The readers of JSON files: they read, or refuse in one line.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "conformance/runner/evidence.h"
#include "reports/reports.h"

namespace {

template <class Action>
void try_reader(const Action& action) {
  try {
    action();
  } catch (const kvcts::input_error& error) {
    const std::string said = error.what();
    if (said.empty() || said.find('\n') != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_reader([&] { kvcts::parse_evidence(text, "file.json"); });
  try_reader([&] { kvcts::parse_report(text, "file.json"); });
  return 0;
}
