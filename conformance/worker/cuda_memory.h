// Device memory for candidates that ask for CUDA pointers. The driver is opened at run time, so
// that the worker is built and runs without CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "conformance/worker/buffers.h"

namespace kvcts::worker {

// Holds the primary context of one device (the one that the CUDA runtime uses), current in the
// thread that made it, and a stream. Everything throws std::runtime_error with the driver's words.
class cuda_memory {
 public:
  explicit cuda_memory(int device);
  ~cuda_memory();
  cuda_memory(const cuda_memory&) = delete;
  cuda_memory& operator=(const cuda_memory&) = delete;

  void* stream() const;
  // A copy of an argument's whole mapping, at the same place within 256 bytes.
  std::byte* copy_in(const argument& a, const std::byte* mapping);
  // Waits for all work on the device.
  void wait();
  // Brings back what changed.
  void copy_out(const argument& a, std::byte* mapping, const std::byte* on_device);
  // Of every copy_in().
  void free_all();

 private:
  struct driver;
  std::unique_ptr<driver> driver_;
  std::vector<std::byte*> allocated_;
};

}  // namespace kvcts::worker
