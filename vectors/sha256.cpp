#include "vectors/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "vectors/file.h"

namespace kvcts {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const unsigned char* from) {
  return std::uint32_t{from[0]} << 24 | std::uint32_t{from[1]} << 16 | std::uint32_t{from[2]} << 8 |
         std::uint32_t{from[3]};
}

}  // namespace

void sha256_stream::block(const unsigned char* from) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(from + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t t1 = h + sum1 + choice + round_constants[i] + w[i];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t t2 = sum0 + majority;
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> after = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += after[i];
}

void sha256_stream::add(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  if (bytes == 0) return;  // data may be null
  length_ += bytes;
  if (held_ != 0) {
    const std::size_t taken = std::min(bytes, pending_.size() - held_);
    std::memcpy(pending_.data() + held_, from, taken);
    held_ += taken;
    from += taken;
    bytes -= taken;
    if (held_ < pending_.size()) return;
    block(pending_.data());
    held_ = 0;
  }
  for (; bytes >= 64; from += 64, bytes -= 64) block(from);
  if (bytes != 0) std::memcpy(pending_.data(), from, bytes);
  held_ = bytes;
}

std::string sha256_stream::finish() {
  const std::uint64_t bits = length_ * 8;
  std::array<unsigned char, 72> tail{0x80};
  // Zeros up to 8 bytes before the end of a block, then the length.
  const std::size_t padding = (held_ < 56 ? 56 : 120) - held_;
  for (std::size_t i = 0; i < 8; ++i) {
    tail[padding + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  }
  add(tail.data(), padding + 8);
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += digits[word >> shift & 15];
  }
  return hex;
}

std::string sha256(const std::byte* data, std::size_t bytes) {
  sha256_stream stream;
  stream.add(data, bytes);
  return stream.finish();
}

}  // namespace kvcts
