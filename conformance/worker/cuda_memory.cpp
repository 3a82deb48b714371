#include "conformance/worker/cuda_memory.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace kvcts::worker {
namespace {

using device_pointer = unsigned long long;  // CUdeviceptr

constexpr std::size_t chunk_bytes = std::size_t{64} << 20;

struct range {
  std::uint64_t first = 0, bytes = 0;
};

// Ranges of the mapping that may hold other bytes than zero.
std::vector<range> written(const argument& a) {
  if (!a.has_holes) return {{0, a.mapped_bytes}};
  std::vector<range> found;
  const auto start = static_cast<off_t>(a.file_offset);
  const auto end = static_cast<off_t>(a.file_offset + a.mapped_bytes);
  for (off_t at = start; at < end;) {
    const off_t first = lseek(a.file, at, SEEK_DATA);
    if (first < 0 || first >= end) break;
    off_t hole = lseek(a.file, first, SEEK_HOLE);
    if (hole < 0 || hole > end) hole = end;
    found.push_back(
        {static_cast<std::uint64_t>(first - start), static_cast<std::uint64_t>(hole - first)});
    at = hole;
  }
  return found;
}

}  // namespace

struct cuda_memory::driver {
  void* library = nullptr;
  int device = 0;
  void* context = nullptr;
  void* stream = nullptr;

  // The driver's interface, as far as it is needed.
  int (*init)(unsigned) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*synchronize)() = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*allocate)(device_pointer*, std::size_t) = nullptr;
  int (*free_memory)(device_pointer) = nullptr;
  int (*to_device)(device_pointer, const void*, std::size_t) = nullptr;
  int (*to_host)(void*, device_pointer, std::size_t) = nullptr;
  int (*fill)(device_pointer, unsigned char, std::size_t) = nullptr;
  int (*error_text)(int, const char**) = nullptr;

  template <class F>
  void find(F& function, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
    std::memcpy(&function, &symbol, sizeof symbol);
  }

  driver() {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw std::runtime_error("no CUDA driver (libcuda.so.1) here");
    find(init, "cuInit");
    find(get_device, "cuDeviceGet");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(release, "cuDevicePrimaryCtxRelease_v2");
    find(set_current, "cuCtxSetCurrent");
    find(synchronize, "cuCtxSynchronize");
    find(stream_create, "cuStreamCreate");
    find(allocate, "cuMemAlloc_v2");
    find(free_memory, "cuMemFree_v2");
    find(to_device, "cuMemcpyHtoD_v2");
    find(to_host, "cuMemcpyDtoH_v2");
    find(fill, "cuMemsetD8_v2");
    find(error_text, "cuGetErrorString");
  }

  void check(int result, const char* what) const {
    if (result == 0) return;
    const char* text = nullptr;
    if (error_text(result, &text) != 0 || text == nullptr) text = "unknown error";
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + text);
  }
};

cuda_memory::cuda_memory(int device) : driver_(std::make_unique<driver>()) {
  driver_->check(driver_->init(0), "start");
  driver_->check(driver_->get_device(&driver_->device, device), "device");
  driver_->check(driver_->retain(&driver_->context, driver_->device), "primary context");
  driver_->check(driver_->set_current(driver_->context), "primary context");
  // The default kind of stream: it waits for work on the legacy stream and the other way round.
  driver_->check(driver_->stream_create(&driver_->stream, 0), "stream");
}

cuda_memory::~cuda_memory() { driver_->release(driver_->device); }

void* cuda_memory::stream() const { return driver_->stream; }

std::byte* cuda_memory::copy_in(const argument& a, const std::byte* mapping) {
  device_pointer made = 0;
  driver_->check(driver_->allocate(&made, a.mapped_bytes), "memory for an argument");
  // Mappings start at a page and device memory at 256 bytes: places agree.
  std::byte* start = nullptr;
  static_assert(sizeof start == sizeof made);
  std::memcpy(&start, &made, sizeof start);
  allocated_.push_back(start);
  if (a.has_holes) driver_->check(driver_->fill(made, 0, a.mapped_bytes), "zeroing an argument");
  for (const range& r : written(a)) {
    driver_->check(driver_->to_device(made + r.first, mapping + r.first, r.bytes),
                   "copy to the device");
  }
  return start;
}

void cuda_memory::wait() { driver_->check(driver_->synchronize(), "the candidate's work"); }

void cuda_memory::copy_out(const argument& a, std::byte* mapping, const std::byte* on_device) {
  const auto from = static_cast<device_pointer>(reinterpret_cast<std::uintptr_t>(on_device));
  if (!a.has_holes) {
    driver_->check(driver_->to_host(mapping, from, a.mapped_bytes), "copy from the device");
    return;
  }
  // A hole is neither read nor written here, unless bytes came into it.
  const std::vector<std::byte> zero(page_bytes);
  std::vector<std::byte> after(std::min<std::size_t>(a.mapped_bytes, chunk_bytes));
  const std::vector<range> before = written(a);
  auto next = before.begin();
  for (std::uint64_t chunk = 0; chunk < a.mapped_bytes; chunk += chunk_bytes) {
    const std::size_t bytes = std::min<std::size_t>(chunk_bytes, a.mapped_bytes - chunk);
    driver_->check(driver_->to_host(after.data(), from + chunk, bytes), "copy from the device");
    for (std::size_t at = 0; at < bytes; at += page_bytes) {
      const std::uint64_t first = chunk + at;
      while (next != before.end() && next->first + next->bytes <= first) ++next;
      const bool hole = next == before.end() || next->first >= first + page_bytes;
      const std::byte* was = hole ? zero.data() : mapping + first;
      if (std::memcmp(was, after.data() + at, page_bytes) != 0) {
        std::memcpy(mapping + first, after.data() + at, page_bytes);
      }
    }
  }
}

void cuda_memory::free_all() {
  for (const std::byte* one : std::exchange(allocated_, {})) {
    driver_->check(
        driver_->free_memory(static_cast<device_pointer>(reinterpret_cast<std::uintptr_t>(one))),
        "freeing an argument");
  }
}

}  // namespace kvcts::worker
