// SHA-256 (FIPS 180-4), for data that arrives in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kvcts {

class sha256_stream {
 public:
  void add(const void* data, std::size_t bytes);
  // Lower-case hex. The stream is used up.
  std::string finish();

 private:
  void block(const unsigned char* from);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::size_t held_ = 0;      // bytes in pending_
  std::uint64_t length_ = 0;  // bytes so far
};

}  // namespace kvcts
