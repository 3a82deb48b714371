#include "vectors/sparse.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

namespace kvcts {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  const int error = errno;
  throw std::runtime_error(what + ": " + std::strerror(error));
}

bool is_zero(const std::byte* at, std::size_t bytes) {
  return at[0] == std::byte{0} && std::memcmp(at, at + 1, bytes - 1) == 0;
}

// Adds [first, first + bytes), which starts at or behind the last range's start.
void append(std::vector<byte_range>& to, std::uint64_t first, std::uint64_t bytes) {
  if (!to.empty() && first <= to.back().first + to.back().bytes) {
    const std::uint64_t end = std::max(to.back().first + to.back().bytes, first + bytes);
    to.back().bytes = end - to.back().first;
  } else {
    to.push_back({first, bytes});
  }
}

}  // namespace

sparse_memory::sparse_memory(std::size_t bytes) : bytes_(bytes) {
  file_ = memfd_create("kvcts-sparse", MFD_CLOEXEC);
  if (file_ < 0) refuse("memory with holes is not to be had");
  const std::string size = std::to_string(bytes) + " bytes with holes are not to be had";
  if (ftruncate(file_, static_cast<off_t>(mapped_bytes())) != 0) {
    close(file_);
    refuse(size);
  }
  void* at =
      mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (at == MAP_FAILED) {
    close(file_);
    refuse(size);
  }
  mapping_ = static_cast<std::byte*>(at);
}

sparse_memory::sparse_memory(const sparse_memory& from)
    : sparse_memory(from.empty() ? sparse_memory() : sparse_memory(from.bytes_)) {
  for (const byte_range& r : from.written()) {
    std::memcpy(data() + r.first, from.data() + r.first, r.bytes);
  }
}

sparse_memory::sparse_memory(sparse_memory&& from) noexcept
    : holed_storage(from),
      file_(std::exchange(from.file_, -1)),
      mapping_(std::exchange(from.mapping_, nullptr)),
      bytes_(std::exchange(from.bytes_, 0)) {}

sparse_memory& sparse_memory::operator=(sparse_memory from) noexcept {
  std::swap(file_, from.file_);
  std::swap(mapping_, from.mapping_);
  std::swap(bytes_, from.bytes_);
  return *this;
}

sparse_memory::~sparse_memory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes());
  if (file_ >= 0) close(file_);
}

std::size_t sparse_memory::mapped_bytes() const {
  return (bytes_ + page - 1) / page * page + 2 * page;
}

std::vector<byte_range> sparse_memory::written() const {
  std::vector<byte_range> found;
  const auto end = static_cast<off_t>(bytes_ + page);
  for (off_t at = page; at < end;) {
    const off_t first = lseek(file_, at, SEEK_DATA);
    if (first < 0 && errno != ENXIO) refuse("holes cannot be found");
    if (first < 0 || first >= end) break;
    const off_t hole = std::min(lseek(file_, first, SEEK_HOLE), end);
    if (hole < 0) refuse("holes cannot be found");
    // A page that was only read may count as data: its bytes tell.
    for (off_t p = first; p < hole; p += page) {
      const std::size_t bytes = std::min<std::size_t>(page, static_cast<std::size_t>(hole - p));
      if (is_zero(mapping_ + p, bytes)) continue;
      append(found, static_cast<std::uint64_t>(p) - page, bytes);
    }
    at = hole;
  }
  return found;
}

std::vector<byte_range> united(const std::vector<byte_range>& a, const std::vector<byte_range>& b) {
  std::vector<byte_range> all(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), all.begin(),
             [](const byte_range& x, const byte_range& y) { return x.first < y.first; });
  std::vector<byte_range> merged;
  for (const byte_range& r : all) append(merged, r.first, r.bytes);
  return merged;
}

}  // namespace kvcts
