#include "conformance/worker/buffers.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace kvcts::worker {

mapped_arguments::mapped_arguments(const std::vector<argument>& arguments, bool all_writable,
                                   status& shown) {
  bytes_ = guard_bytes;
  for (const argument& a : arguments) bytes_ += a.mapped_bytes + guard_bytes;
  void* region =
      mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) {
    throw std::runtime_error(std::string("no address space for the arguments: ") +
                             std::strerror(errno));
  }
  region_ = static_cast<std::byte*>(region);
  std::byte* at = region_ + guard_bytes;
  for (const argument& a : arguments) {
    const int access = PROT_READ | (all_writable || a.role != KVCTS_INPUT ? PROT_WRITE : 0);
    void* mapped = mmap(at, a.mapped_bytes, access, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, a.file,
                        static_cast<off_t>(a.file_offset));
    if (mapped == MAP_FAILED) {
      const int error = errno;
      munmap(region_, bytes_);
      throw std::runtime_error("argument " + a.name + " cannot be mapped: " + std::strerror(error));
    }
    shown.mapped_at[starts_.size()] = reinterpret_cast<std::uintptr_t>(at);
    starts_.push_back(at);
    at += a.mapped_bytes + guard_bytes;
  }
}

mapped_arguments::~mapped_arguments() { munmap(region_, bytes_); }

}  // namespace kvcts::worker
