#include <algorithm>
#include <numeric>
#include <vector>

#include "optimized/bench.h"
#include "optimized/cuda/launch.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

constexpr std::int64_t block_size = 64;

// bf16 of both signs with magnitudes from 2^-8 to 8, never zeros.
__global__ void fill_bf16(std::uint16_t* x, std::int64_t count, std::uint32_t seed) {
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    std::uint32_t r = static_cast<std::uint32_t>(i) * 0x9E3779B9u + seed;
    r = (r ^ (r >> 16)) * 0x85EBCA6Bu;
    r = (r ^ (r >> 13)) * 0xC2B2AE35u;
    r ^= r >> 16;
    const std::uint32_t exponent = 119 + (r >> 8 & 0xFFFF) % 11;
    x[i] = static_cast<std::uint16_t>((r >> 31) << 15 | exponent << 7 | (r & 0x7F));
  }
}

__global__ void nothing() {}

// Device memory of one size.
class device_memory {
 public:
  explicit device_memory(std::int64_t bytes) : bytes_(bytes) {
    cuda_check(cudaMalloc(&start_, static_cast<std::size_t>(bytes)), "cudaMalloc");
  }
  ~device_memory() { cudaFree(start_); }
  device_memory(device_memory&& other) noexcept : start_(other.start_), bytes_(other.bytes_) {
    other.start_ = nullptr;
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  device_memory& operator=(device_memory&&) = delete;
  std::byte* start() const { return static_cast<std::byte*>(start_); }
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_); }

 private:
  void* start_ = nullptr;
  std::int64_t bytes_;
};

struct stream_owner {
  cudaStream_t stream = nullptr;
  stream_owner() { cuda_check(cudaStreamCreate(&stream), "cudaStreamCreate"); }
  ~stream_owner() { cudaStreamDestroy(stream); }
  stream_owner(const stream_owner&) = delete;
  stream_owner& operator=(const stream_owner&) = delete;
};
struct event_owner {
  cudaEvent_t event = nullptr;
  event_owner() { cuda_check(cudaEventCreate(&event), "cudaEventCreate"); }
  ~event_owner() { cudaEventDestroy(event); }
  event_owner(const event_owner&) = delete;
  event_owner& operator=(const event_owner&) = delete;
};

// A call whose tensors are on the device.
struct problem {
  std::string op;
  std::string size;
  call work;
  std::vector<device_memory> buffers;
  std::int64_t bytes = 0;  // read and written

  std::byte* add(const char* name, dtype type, std::vector<std::int64_t> shape) {
    const std::int64_t size_in_bytes = count(shape) * static_cast<std::int64_t>(size_of(type));
    buffers.emplace_back(size_in_bytes);
    tensor_view v;
    v.storage = buffers.back().start();
    v.storage_bytes = buffers.back().bytes();
    v.type = type;
    v.at = dense(std::move(shape));
    work.tensors[name] = v;
    return v.storage;
  }
  void add_values(const char* name, std::vector<std::int64_t> shape, std::uint32_t seed) {
    const std::int64_t values = count(shape);
    auto* x = reinterpret_cast<std::uint16_t*>(add(name, dtype::bf16, std::move(shape)));
    fill_bf16<<<1024, 256>>>(x, values, seed);
    cuda_check(cudaGetLastError(), "fill_bf16");
  }
};

problem query(std::int64_t tokens, std::int64_t heads, std::uint32_t seed) {
  problem p;
  p.op = "mxfp4_q_quant";
  p.size = "T=" + std::to_string(tokens) + " H=" + std::to_string(heads);
  p.work.kernel = p.op;
  p.add_values("index_q", {tokens, heads, 128}, seed);
  p.add_values("index_weights", {tokens, heads}, seed + 1);
  p.add("q_packed", dtype::u8, {tokens, heads, 64});
  p.add("q_scale", dtype::i32, {tokens, heads});
  p.add("weights", dtype::f32, {tokens, heads});
  p.work.attributes["weight_scale"] = 0.08838834764831845;
  p.work.attributes["padded_num_heads"] = heads;
  p.bytes = tokens * heads * (256 + 2 + 64 + 4 + 4);
  return p;
}

problem insert(std::int64_t tokens, std::int64_t record, std::uint32_t seed) {
  problem p;
  p.op = "quantize_and_insert_k_cache " + std::to_string(record);
  p.size = "T=" + std::to_string(tokens);
  p.work.kernel = "quantize_and_insert_k_cache";
  p.add_values("k", {tokens, 512}, seed);
  p.add("k_cache", dtype::u8, {(tokens + block_size - 1) / block_size, block_size, record});
  std::vector<std::int64_t> slots(static_cast<std::size_t>(tokens));
  std::iota(slots.begin(), slots.end(), 0);
  std::uint64_t state = seed;
  for (std::size_t i = slots.size(); i > 1; --i) {  // Fisher-Yates over a 64-bit LCG
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(slots[i - 1], slots[(state >> 33) % i]);
  }
  std::byte* mapping = p.add("slot_mapping", dtype::i64, {tokens});
  cuda_check(cudaMemcpy(mapping, slots.data(), slots.size() * 8, cudaMemcpyHostToDevice),
             "copy of the slots");
  p.work.attributes["block_size"] = block_size;
  p.work.attributes["bytes_per_token"] = record;
  p.work.attributes["use_fnuz"] = std::int64_t{0};
  p.bytes = tokens * (1024 + 8 + record);
  return p;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Microseconds a launch of `launches` queued by `work`.
template <class Work>
double timed(cudaStream_t stream, int launches, const Work& work) {
  const event_owner begin;
  const event_owner end;
  cuda_check(cudaEventRecord(begin.event, stream), "cudaEventRecord");
  work();
  cuda_check(cudaEventRecord(end.event, stream), "cudaEventRecord");
  cuda_check(cudaEventSynchronize(end.event), "cudaEventSynchronize");
  float milliseconds = 0;
  cuda_check(cudaEventElapsedTime(&milliseconds, begin.event, end.event), "cudaEventElapsedTime");
  return 1000.0 * milliseconds / launches;
}

// `make(seed)` builds one of the sets that the launches take in turn, so that the L2 cache holds
// neither inputs nor outputs of the next one.
template <class Make>
cuda_bench_row measured(const Make& make) {
  constexpr int sets = 4;
  constexpr int launches = 2 * sets;
  constexpr int samples = 41;
  const stream_owner queue;
  std::vector<problem> problems;
  std::vector<device_memory> sources;
  std::vector<device_memory> copies;
  for (int i = 0; i < sets; ++i) {
    problems.push_back(make(static_cast<std::uint32_t>(1000 + i)));
    sources.emplace_back(problems.back().bytes / 2);
    copies.emplace_back(problems.back().bytes / 2);
    fill_bf16<<<1024, 256>>>(reinterpret_cast<std::uint16_t*>(sources.back().start()),
                             problems.back().bytes / 4, static_cast<std::uint32_t>(i));
    cuda_check(cudaGetLastError(), "fill_bf16");
  }
  cuda_check(cudaDeviceSynchronize(), "filling the buffers");

  const auto run = [&] {
    for (int i = 0; i < launches; ++i) {
      run_cuda(problems[static_cast<std::size_t>(i % sets)].work, profile::nvidia, queue.stream);
    }
  };
  const auto copy = [&] {
    for (int i = 0; i < launches; ++i) {
      const auto set = static_cast<std::size_t>(i % sets);
      cuda_check(cudaMemcpyAsync(copies[set].start(), sources[set].start(), sources[set].bytes(),
                                 cudaMemcpyDeviceToDevice, queue.stream),
                 "device-to-device copy");
    }
  };
  std::vector<double> run_times;
  std::vector<double> copy_times;
  for (int sample = 0; sample < samples + 5; ++sample) {  // in turn: both see the same clocks
    const double ran = timed(queue.stream, launches, run);
    const double copied = timed(queue.stream, launches, copy);
    if (sample < 5) continue;  // warm-up
    run_times.push_back(ran);
    copy_times.push_back(copied);
  }

  cuda_bench_row row;
  row.op = problems.front().op;
  row.size = problems.front().size;
  row.bytes = problems.front().bytes;
  row.time_us = median(run_times);
  row.copy_time_us = median(copy_times);
  row.share_of_copy = row.copy_time_us / row.time_us;
  return row;
}

// A launch's time inside a graph of many, replayed.
template <class Launch>
double replayed(cudaStream_t stream, const Launch& launch) {
  constexpr int launches = 64;
  constexpr int samples = 21;
  cudaGraph_t graph = nullptr;
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < launches; ++i) launch();
  cuda_check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t ready = nullptr;
  cuda_check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  std::vector<double> times;
  for (int sample = 0; sample < samples + 3; ++sample) {
    const double us = timed(stream, launches,
                            [&] { cuda_check(cudaGraphLaunch(ready, stream), "cudaGraphLaunch"); });
    if (sample >= 3) times.push_back(us);
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  return median(times);
}

void require_device() {
  const cuda_status status = cuda_available();
  if (!status.available) throw std::runtime_error(status.why_not);
}

}  // namespace

std::vector<cuda_bench_row> bench_cuda() {
  require_device();
  std::vector<cuda_bench_row> rows;
  rows.push_back(measured([](std::uint32_t seed) { return query(16384, 32, seed); }));
  for (const std::int64_t record : {584, 528}) {
    rows.push_back(measured([&](std::uint32_t seed) { return insert(65536, record, seed); }));
  }
  return rows;
}

std::vector<cuda_decode_row> bench_cuda_decode() {
  require_device();
  const stream_owner queue;
  const double empty = replayed(queue.stream, [&] { nothing<<<1, 32, 0, queue.stream>>>(); });
  std::vector<cuda_decode_row> rows;
  for (const std::int64_t tokens : {1, 8, 64}) {
    std::vector<problem> problems;
    problems.push_back(query(tokens, 32, 1));
    for (const std::int64_t record : {584, 528}) problems.push_back(insert(tokens, record, 1));
    cuda_check(cudaDeviceSynchronize(), "filling the buffers");
    for (const problem& p : problems) {
      cuda_decode_row row;
      row.op = p.op;
      row.tokens = tokens;
      row.time_us =
          replayed(queue.stream, [&] { run_cuda(p.work, profile::nvidia, queue.stream); });
      row.empty_us = empty;
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace kvcts
