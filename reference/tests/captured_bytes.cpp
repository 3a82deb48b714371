#include "reference/tests/captured_bytes.h"

#include <zlib.h>

namespace kvcts::test {

std::vector<std::int8_t> captured_bytes(const std::string& name, std::size_t expected_size) {
  const std::string path = std::string(KVCTS_SOURCE_DIR) + "/vectors/captured/" + name;
  std::vector<std::int8_t> bytes(expected_size + 1);  // one more, to see a longer file
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return {};
  }
  const int got = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  const bool closed = gzclose(file) == Z_OK;
  bytes.resize(got < 0 || !closed ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace kvcts::test
