// The `cuda` candidate: what there is, and running a call.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "optimized/cuda/launch.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

std::string version_text(int version) {  // 13000 -> "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_text() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) return "unknown";
  std::ifstream module("/sys/module/nvidia/version");
  std::string number;
  const std::string cuda = "CUDA " + version_text(version);
  return std::getline(module, number) && !number.empty() ? number + " (" + cuda + ")" : cuda;
}

cuda_status status_now() {
  cuda_status status;
  status.compiler = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                    std::to_string(__CUDACC_VER_MINOR__) + "." +
                    std::to_string(__CUDACC_VER_BUILD__);
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    cudaGetLastError();  // so that no later check meets it
    status.why_not = std::string("no CUDA device: ") +
                     (found != cudaSuccess ? cudaGetErrorString(found) : "the driver lists none");
    return status;
  }
  cudaDeviceProp properties;
  const cudaError_t read = cudaGetDeviceProperties(&properties, 0);
  if (read != cudaSuccess) {
    cudaGetLastError();
    status.why_not = std::string("CUDA device 0 cannot be read: ") + cudaGetErrorString(read);
    return status;
  }
  status.device = properties.name;
  status.driver = driver_text();
  status.multiprocessors = properties.multiProcessorCount;
  if (properties.major < 8) {
    status.why_not = status.device + " has compute capability " + std::to_string(properties.major) +
                     "." + std::to_string(properties.minor) + ", 8.0 or more is needed";
    return status;
  }
  status.available = true;
  return status;
}

struct device_free {
  void operator()(void* p) const { cudaFree(p); }
};

// A buffer's copy on the device, at the same place within 256 bytes as on the host: alignment is
// the host's.
struct device_buffer {
  std::unique_ptr<void, device_free> memory;
  std::byte* start = nullptr;
  std::size_t bytes = 0;
};

// A host storage, and the ranges of it that may hold other bytes than zero.
struct host_storage {
  std::size_t bytes = 0;
  const holed_storage* holes = nullptr;
  std::vector<byte_range> written() const {
    if (holes != nullptr) return holes->written();
    return {{0, bytes}};
  }
};

device_buffer copy_to_device(const std::byte* from, const host_storage& storage) {
  device_buffer buffer;
  const std::size_t bytes = storage.bytes;
  const std::size_t shift = reinterpret_cast<std::uintptr_t>(from) % 256;
  void* memory = nullptr;
  cuda_check(cudaMalloc(&memory, bytes + shift), "cudaMalloc");
  buffer.memory.reset(memory);
  buffer.start = static_cast<std::byte*>(memory) + shift;
  buffer.bytes = bytes;
  if (storage.holes != nullptr) {
    cuda_check(cudaMemset(buffer.start, 0, bytes), "zeroing on the device");
  }
  for (const byte_range& r : storage.written()) {
    cuda_check(cudaMemcpy(buffer.start + r.first, from + r.first, r.bytes, cudaMemcpyHostToDevice),
               "copy to the device");
  }
  return buffer;
}

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// A block a chunk: whether any byte of it is not zero.
__global__ void mark_chunks(const unsigned char* start, std::size_t bytes, unsigned char* marks) {
  const std::size_t first = blockIdx.x * chunk_bytes;
  const std::size_t last = first + chunk_bytes < bytes ? first + chunk_bytes : bytes;
  bool any = false;
  if ((reinterpret_cast<std::uintptr_t>(start) & 15) == 0 && last - first == chunk_bytes) {
    const auto* words = reinterpret_cast<const uint4*>(start + first);
    for (std::size_t i = threadIdx.x; i < chunk_bytes / 16; i += blockDim.x) {
      const uint4 w = words[i];
      any = any || (w.x | w.y | w.z | w.w) != 0;
    }
  } else {
    for (std::size_t i = first + threadIdx.x; i < last; i += blockDim.x) any = any || start[i] != 0;
  }
  if (__syncthreads_or(any) && threadIdx.x == 0) marks[blockIdx.x] = 1;
}

std::vector<unsigned char> chunks_with_bytes(const device_buffer& buffer) {
  std::vector<unsigned char> marks((buffer.bytes + chunk_bytes - 1) / chunk_bytes);
  void* memory = nullptr;
  cuda_check(cudaMalloc(&memory, marks.size()), "cudaMalloc");
  const std::unique_ptr<void, device_free> on_device(memory);
  cuda_check(cudaMemset(memory, 0, marks.size()), "zeroing on the device");
  mark_chunks<<<static_cast<unsigned>(marks.size()), 256>>>(
      reinterpret_cast<const unsigned char*>(buffer.start), buffer.bytes,
      static_cast<unsigned char*>(memory));
  cuda_check(cudaMemcpy(marks.data(), memory, marks.size(), cudaMemcpyDeviceToHost),
             "looking for bytes on the device");
  return marks;
}

// What changed on the device comes back, and nothing else is written: the memory may be read-only
// here, or a hole. Nor is a hole read, and of a chunk of holes that the device left zero nothing is
// copied.
void copy_back(std::byte* to, const host_storage& storage, const device_buffer& buffer) {
  constexpr std::size_t page = 4096;
  const std::vector<std::byte> zero(page);
  std::vector<std::byte> after(std::min(buffer.bytes, chunk_bytes));
  const std::vector<byte_range> written = storage.written();
  const std::vector<unsigned char> marks =
      storage.holes != nullptr ? chunks_with_bytes(buffer) : std::vector<unsigned char>();
  auto range = written.begin();
  for (std::size_t chunk = 0; chunk < buffer.bytes; chunk += chunk_bytes) {
    const std::size_t bytes = std::min(chunk_bytes, buffer.bytes - chunk);
    while (range != written.end() && range->first + range->bytes <= chunk) ++range;
    const bool only_holes = range == written.end() || range->first >= chunk + bytes;
    if (only_holes && !marks.empty() && marks[chunk / chunk_bytes] == 0) continue;
    cuda_check(cudaMemcpy(after.data(), buffer.start + chunk, bytes, cudaMemcpyDeviceToHost),
               "copy from the device");
    for (std::size_t at = 0; at < bytes; at += page) {
      const std::size_t first = chunk + at;
      const std::size_t part = std::min(page, bytes - at);
      while (range != written.end() && range->first + range->bytes <= first) ++range;
      const bool hole = range == written.end() || range->first >= first + part;
      const std::byte* before = hole ? zero.data() : to + first;
      if (std::memcmp(before, after.data() + at, part) != 0) {
        std::memcpy(to + first, after.data() + at, part);
      }
    }
  }
}

}  // namespace

cuda_status cuda_available() {
  static const cuda_status status = status_now();
  return status;
}

bool cuda_supports(std::string_view kernel) {
#define KVCTS_KERNEL(K) \
  if (kernel == #K) return true;
#include "optimized/kernels.def"
#undef KVCTS_KERNEL
  return false;
}

void run_cuda(const call& c, profile p, void* stream) {
#define KVCTS_KERNEL(K) \
  if (c.kernel == #K) return launch_##K(K##_of(c), p, static_cast<cudaStream_t>(stream));
#include "optimized/kernels.def"
#undef KVCTS_KERNEL
  throw input_error("candidate cuda has no kernel '" + c.kernel + "'");
}

void run_cuda_on_host_buffers(const call& c, profile p) {
  // Tensors may share a storage; it is copied once.
  std::map<std::byte*, host_storage> storages;
  for (const auto& [name, view] : c.tensors) {
    if (view.storage == nullptr || view.storage_bytes == 0) continue;
    host_storage& storage = storages[view.storage];
    storage.bytes = std::max(storage.bytes, view.storage_bytes);
    storage.holes = view.holes;
  }
  std::map<std::byte*, device_buffer> buffers;
  for (const auto& [start, storage] : storages) buffers[start] = copy_to_device(start, storage);
  call on_device = c;
  for (auto& [name, view] : on_device.tensors) {
    const auto found = buffers.find(view.storage);
    view.storage = found == buffers.end() ? nullptr : found->second.start;
  }

  run_cuda(on_device, p, nullptr);
  cuda_check(cudaDeviceSynchronize(), c.kernel.c_str());

  // Whole buffers come back, inputs too.
  for (const auto& [start, storage] : storages) copy_back(start, storage, buffers[start]);
}

}  // namespace kvcts
