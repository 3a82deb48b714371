// The reader of a submission's archive: what it reads is written again byte for byte, or it refuses
// in one line. And texts made safe for a terminal stay as they are when that is done once more.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/printable.h"
#include "reference/layout/tensor.h"
#include "reports/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  kvcts::first_member_of(bytes);
  const std::string safe = kvcts::printable(bytes);
  if (kvcts::printable(safe) != safe || safe.find('\n') != std::string::npos) std::abort();
  try {
    if (kvcts::write_archive(kvcts::read_archive(bytes)) != bytes) std::abort();
  } catch (const kvcts::input_error& error) {
    const std::string said = error.what();
    if (said.empty() || said.find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
