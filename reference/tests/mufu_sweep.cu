// The oracle's formulas against the instructions themselves, on the GPU: all 2^32 inputs of each
// unary one, and 2^32 pairs of div.full. One line an instruction; exit 0 where no result differs,
// 1 where one does, 2 where there is no usable device.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "reference/numerics/mufu_core.h"

namespace {

using kvcts::mufu_segment;
namespace mufu = kvcts::mufu;

__constant__ mufu_segment rcp_on_device[128];
__constant__ mufu_segment rsqrt_on_device[128];
__constant__ mufu_segment ex2_on_device[64];

struct finding {
  unsigned long long mismatches;
  unsigned long long input;  // of one of them
};

bool failed(cudaError_t status, const char* what) {
  if (status == cudaSuccess) {
    return false;
  }
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  return true;
}

__device__ bool is_nan(std::uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

// The four unary instructions: the hardware's result and the formula's, on bits.
struct rcp_instruction {
  static constexpr const char* name = "rcp.approx.ftz.f32";
  static __device__ std::uint32_t hardware(std::uint32_t x) {
    std::uint32_t y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
  }
  static __device__ std::uint32_t formula(std::uint32_t x) {
    return mufu::rcp_bits(x, rcp_on_device);
  }
};

struct rsqrt_instruction {
  static constexpr const char* name = "rsqrt.approx.ftz.f32";
  static __device__ std::uint32_t hardware(std::uint32_t x) {
    std::uint32_t y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
  }
  static __device__ std::uint32_t formula(std::uint32_t x) {
    return mufu::rsqrt_bits(x, rsqrt_on_device);
  }
};

struct ex2_ftz_instruction {
  static constexpr const char* name = "ex2.approx.ftz.f32";
  static __device__ std::uint32_t hardware(std::uint32_t x) {
    std::uint32_t y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
  }
  static __device__ std::uint32_t formula(std::uint32_t x) {
    return mufu::ex2_bits(x, ex2_on_device);
  }
};

struct ex2_instruction {
  static constexpr const char* name = "ex2.approx.f32";
  static __device__ std::uint32_t hardware(std::uint32_t x) {
    std::uint32_t y;
    asm("ex2.approx.f32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
  }
  static __device__ std::uint32_t formula(std::uint32_t x) {
    return mufu::ex2_full_range_bits(x, ex2_on_device);
  }
};

constexpr int blocks = 4096;
constexpr int threads = 256;
constexpr std::uint64_t inputs = std::uint64_t{1} << 32;

__device__ void report(finding* found, std::uint64_t input) {
  atomicAdd(&found->mismatches, 1ULL);
  found->input = input;
}

template <class Instruction>
__global__ void compare_all(finding* found) {
  const std::uint64_t step = std::uint64_t{blocks} * threads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < inputs; i += step) {
    const auto x = static_cast<std::uint32_t>(i);
    if (Instruction::hardware(x) != Instruction::formula(x)) {
      report(found, i);
    }
  }
}

template <class Instruction>
__global__ void hardware_results(std::uint32_t first, std::uint32_t* results, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    results[i] = Instruction::hardware(first + i);
  }
}

// Bits that look random (splitmix64).
__device__ std::uint64_t mixed(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// One operand in four is subnormal, huge, infinite, zero or a NaN.
__device__ std::uint32_t operand(std::uint32_t bits, std::uint32_t choice) {
  const std::uint32_t sign = bits & 0x80000000;
  switch (choice & 31) {
    case 0:
      return sign | (bits & 0x007FFFFF);  // subnormal
    case 1:
      return sign | 0x7F000000 | (bits & 0x007FFFFF);  // [2^127, inf)
    case 2:
      return sign | 0x7E800000 | (bits & 0x007FFFFF);  // [2^126, 2^127)
    case 3:
      return sign | 0x00800000 | (bits & 0x007FFFFF);  // the smallest normal binade
    case 4:
      return sign | 0x7F800000;
    case 5:
      return sign | 0x7F800000 | (bits & 0x007FFFFF);  // mostly NaN
    case 6:
      return sign;
    case 7:
      return sign | 0x7E800000;  // 2^126, where the scaling does not begin yet
    default:
      return bits;
  }
}

__global__ void compare_division(finding* found) {
  const std::uint64_t step = std::uint64_t{blocks} * threads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < inputs; i += step) {
    const std::uint64_t bits = mixed(2 * i);
    const std::uint64_t choice = mixed(2 * i + 1);
    const std::uint32_t a =
        operand(static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(choice));
    const std::uint32_t b =
        operand(static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(choice >> 32));
    std::uint32_t hardware;
    asm("div.full.f32 %0, %1, %2;" : "=r"(hardware) : "r"(a), "r"(b));
    const std::uint32_t formula = mufu::div_full_bits(a, b, rcp_on_device);
    const bool equal = hardware == formula || (is_nan(hardware) && is_nan(formula));
    if (!equal) {
      report(found, std::uint64_t{a} << 32 | b);
    }
  }
}

// Prints the line; false where something differs or the device fails.
template <class Launch>
bool compare(const char* name, const char* noun, finding* device, Launch launch) {
  finding found{};
  cudaMemset(device, 0, sizeof found);
  launch();
  if (failed(cudaGetLastError(), name) ||
      failed(cudaMemcpy(&found, device, sizeof found, cudaMemcpyDeviceToHost), name)) {
    return false;
  }
  std::printf("%s: %llu %s, %llu mismatches", name, static_cast<unsigned long long>(inputs), noun,
              found.mismatches);
  if (found.mismatches != 0) {
    std::printf(", one of them at bits 0x%llX", found.input);
  }
  std::printf("\n");
  return found.mismatches == 0;
}

std::uint32_t crc32_of(const std::vector<std::uint32_t>& words) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::uint32_t word : words) {
    for (int byte = 0; byte < 4; ++byte) {
      crc ^= word >> (8 * byte) & 0xFF;
      for (int bit = 0; bit < 8; ++bit) {
        crc = (crc & 1) != 0 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
      }
    }
  }
  return ~crc;
}

// The checksum of 2^23 results of ex2.approx.ftz.f32, which a test without a GPU holds the formula
// against.
bool print_checksum(std::uint32_t first) {
  constexpr std::uint32_t count = 1u << 23;
  std::uint32_t* device = nullptr;
  std::vector<std::uint32_t> results(count);
  if (failed(cudaMalloc(&device, count * sizeof(std::uint32_t)), "cudaMalloc")) {
    return false;
  }
  hardware_results<ex2_ftz_instruction><<<count / threads, threads>>>(first, device, count);
  const cudaError_t copied =
      cudaMemcpy(results.data(), device, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost);
  cudaFree(device);
  if (failed(copied, "ex2 results")) {
    return false;
  }
  std::printf("%s: CRC-32 of the results from bits 0x%08X, 2^23 of them: 0x%08X\n",
              ex2_ftz_instruction::name, first, crc32_of(results));
  return true;
}

}  // namespace

int main() {
  finding* device = nullptr;
  cudaDeviceProp properties{};
  if (failed(cudaGetDeviceProperties(&properties, 0), "no CUDA device") ||
      failed(cudaMemcpyToSymbol(rcp_on_device, kvcts::rcp_segments, sizeof kvcts::rcp_segments),
             "rcp table") ||
      failed(
          cudaMemcpyToSymbol(rsqrt_on_device, kvcts::rsqrt_segments, sizeof kvcts::rsqrt_segments),
          "rsqrt table") ||
      failed(cudaMemcpyToSymbol(ex2_on_device, kvcts::ex2_segments, sizeof kvcts::ex2_segments),
             "ex2 table") ||
      failed(cudaMalloc(&device, sizeof(finding)), "cudaMalloc")) {
    return 2;
  }
  std::printf("device: %s, sm_%d%d\n", properties.name, properties.major, properties.minor);
  bool equal = true;
  const auto unary = [&](auto instruction) {
    using type = decltype(instruction);
    equal &= compare(type::name, "inputs", device,
                     [&] { compare_all<type><<<blocks, threads>>>(device); });
  };
  unary(rcp_instruction{});
  unary(rsqrt_instruction{});
  unary(ex2_ftz_instruction{});
  unary(ex2_instruction{});
  equal &= compare("div.full.f32", "pairs", device,
                   [&] { compare_division<<<blocks, threads>>>(device); });
  equal &= print_checksum(0x3F800000);
  equal &= print_checksum(0xBF800000);
  cudaFree(device);
  return equal ? 0 : 1;
}
