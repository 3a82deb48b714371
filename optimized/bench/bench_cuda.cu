#include <algorithm>
#include <vector>

#include "optimized/bench.h"
#include "optimized/bench/problems.h"
#include "optimized/cuda/launch.h"
#include "optimized/optimized.h"

namespace kvcts {
namespace {

__global__ void nothing() {}

// Keeps the stream busy while the host queues what is timed behind it.
__global__ void hold(std::uint64_t nanoseconds) {
  std::uint64_t start = 0;
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// `loads` loads, each of the address that the one before gave.
__global__ void chase(const std::uint32_t* next, int loads, std::uint32_t* end) {
  std::uint32_t at = 0;
  for (int i = 0; i < loads; ++i) at = next[at];
  *end = at;
}

// Device memory of one size, zero.
class device_memory {
 public:
  explicit device_memory(std::size_t bytes) : bytes_(bytes) {
    cuda_check(cudaMalloc(&start_, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
    cuda_check(cudaMemset(start_, 0, bytes), "cudaMemset");
  }
  ~device_memory() { cudaFree(start_); }
  device_memory(device_memory&& other) noexcept : start_(other.start_), bytes_(other.bytes_) {
    other.start_ = nullptr;
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  device_memory& operator=(device_memory&&) = delete;
  std::byte* start() const { return static_cast<std::byte*>(start_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* start_ = nullptr;
  std::size_t bytes_;
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

// A problem's call over a copy of its buffers on the device.
struct device_problem {
  call work;
  std::vector<device_memory> buffers;

  // What only the kernel writes needs no copy.
  explicit device_problem(const bench_problem& p) : work(p.work) {
    buffers.reserve(work.tensors.size());
    for (auto& [name, v] : work.tensors) {
      const std::byte* from = v.storage;
      buffers.emplace_back(v.storage_bytes);
      v.storage = buffers.back().start();
      if (p.outputs.count(name) != 0) continue;
      cuda_check(cudaMemcpy(v.storage, from, v.storage_bytes, cudaMemcpyDefault), "copy of inputs");
    }
  }
};

// The largest input again and again: a copy of zeros would draw less power.
void fill(const device_memory& to, const bench_problem& p, const device_problem& from) {
  const tensor_view* largest = nullptr;
  for (const auto& [name, v] : from.work.tensors) {
    if (p.outputs.count(name) != 0) continue;
    if (largest == nullptr || v.storage_bytes > largest->storage_bytes) largest = &v;
  }
  for (std::size_t done = 0; done < to.bytes(); done += largest->storage_bytes) {
    const std::size_t part = std::min(largest->storage_bytes, to.bytes() - done);
    cuda_check(cudaMemcpy(to.start() + done, largest->storage, part, cudaMemcpyDefault),
               "filling the copy's source");
  }
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
  hold<<<1, 1, 0, stream>>>(20000 + 8000 * static_cast<std::uint64_t>(launches));
  cuda_check(cudaGetLastError(), "hold");
  cuda_check(cudaEventRecord(begin.event, stream), "cudaEventRecord");
  work();
  cuda_check(cudaEventRecord(end.event, stream), "cudaEventRecord");
  cuda_check(cudaEventSynchronize(end.event), "cudaEventSynchronize");
  float milliseconds = 0;
  cuda_check(cudaEventElapsedTime(&milliseconds, begin.event, end.event), "cudaEventElapsedTime");
  return 1000.0 * milliseconds / launches;
}

std::int64_t l2_bytes() {
  int bytes = 0;
  cuda_check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0), "size of the L2 cache");
  return bytes;
}

// The launches take sets of buffers in turn, so that the L2 cache holds neither inputs nor outputs
// of the next one.
cuda_bench_row measured(const bench_op& op, std::int64_t tokens) {
  constexpr int samples = 31;
  const bench_problem p = op.make(op, tokens);
  const std::int64_t l2 = l2_bytes();
  cuda_bench_row row;
  row.op = op.name;
  row.size = p.size;
  row.bytes = p.bytes;
  row.target = op.copy_target;
  row.fits_l2 = p.bytes <= l2;
  row.sets = static_cast<int>(std::clamp<std::int64_t>(3 * l2 / p.bytes + 1, 2, 64));
  const int launches = row.sets * ((7 + row.sets) / row.sets);

  const stream_owner queue;
  std::vector<device_problem> problems;
  std::vector<device_memory> sources;
  std::vector<device_memory> copies;
  problems.reserve(static_cast<std::size_t>(row.sets));
  problems.emplace_back(p);
  bench_problem on_device;  // the other sets are copies of the first
  on_device.work = problems.front().work;
  on_device.outputs = p.outputs;
  for (int i = 0; i < row.sets; ++i) {
    if (i > 0) problems.emplace_back(on_device);
    sources.emplace_back(static_cast<std::size_t>(p.bytes / 2));
    copies.emplace_back(static_cast<std::size_t>(p.bytes / 2));
    fill(sources.back(), p, problems.front());
  }
  cuda_check(cudaDeviceSynchronize(), "filling the buffers");

  const auto run = [&] {
    for (int i = 0; i < launches; ++i) {
      run_cuda(problems[static_cast<std::size_t>(i % row.sets)].work, profile::nvidia,
               queue.stream);
    }
  };
  const auto copy = [&] {
    for (int i = 0; i < launches; ++i) {
      const auto set = static_cast<std::size_t>(i % row.sets);
      cuda_check(cudaMemcpyAsync(copies[set].start(), sources[set].start(), sources[set].bytes(),
                                 cudaMemcpyDeviceToDevice, queue.stream),
                 "device-to-device copy");
    }
  };
  std::vector<double> run_times;
  std::vector<double> copy_times;
  for (int sample = 0; sample < samples + 3; ++sample) {  // in turn: both see the same clocks
    const double ran = timed(queue.stream, launches, run);
    const double copied = timed(queue.stream, launches, copy);
    if (sample < 3) continue;  // warm-up
    run_times.push_back(ran);
    copy_times.push_back(copied);
  }
  row.time_us = median(run_times);
  row.copy_us = median(copy_times);
  row.share_of_copy = row.copy_us / row.time_us;
  return row;
}

// A launch's time inside a graph of many, replayed.
template <class Launch>
double replayed(cudaStream_t stream, const Launch& launch) {
  constexpr int launches = 20;
  constexpr int samples = 31;
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

// Of 1 .. 6 loads, each from another line of 128 bytes.
std::vector<double> chased(cudaStream_t stream) {
  constexpr std::uint32_t step = 32 * 37;
  constexpr int loads = 6;
  std::vector<std::uint32_t> next(loads * step + 1);
  for (std::uint32_t i = 0; i + step < next.size(); ++i) next[i] = i + step;
  const device_memory table(next.size() * 4);
  const device_memory end(4);
  cuda_check(cudaMemcpy(table.start(), next.data(), table.bytes(), cudaMemcpyDefault),
             "copy of the chase");
  std::vector<double> times;
  for (int i = 1; i <= loads; ++i) {
    times.push_back(replayed(stream, [&] {
      chase<<<1, 1, 0, stream>>>(reinterpret_cast<const std::uint32_t*>(table.start()), i,
                                 reinterpret_cast<std::uint32_t*>(end.start()));
    }));
  }
  return times;
}

bool is_chosen(const bench_choice& choice, const bench_op& op) {
  return cuda_supports(op.kernel) && (!choice.wanted || choice.wanted(op.kernel));
}

void require_device() {
  const cuda_status status = cuda_available();
  if (!status.available) throw std::runtime_error(status.why_not);
}

}  // namespace

std::vector<cuda_bench_row> bench_cuda(const bench_choice& choice) {
  require_device();
  std::vector<cuda_bench_row> rows;
  for (const bench_op& op : bench_ops()) {
    if (!is_chosen(choice, op)) continue;
    for (const std::int64_t tokens : op.tokens) {
      if (choice.progress) choice.progress(op.name + " " + std::to_string(tokens));
      rows.push_back(measured(op, tokens));
    }
  }
  return rows;
}

cuda_decode bench_cuda_decode(const bench_choice& choice) {
  require_device();
  const stream_owner queue;
  cuda_decode decode;
  decode.empty_us = replayed(queue.stream, [&] { nothing<<<1, 32, 0, queue.stream>>>(); });
  decode.chase_us = chased(queue.stream);
  for (const bench_op& op : bench_ops()) {
    if (!op.decodes || !is_chosen(choice, op)) continue;
    for (const std::int64_t tokens : {1, 8, 64}) {
      if (choice.progress) choice.progress(op.name + " " + std::to_string(tokens));
      const device_problem p(op.make(op, tokens));
      cuda_check(cudaDeviceSynchronize(), "filling the buffers");
      cuda_decode_row row;
      row.op = op.name;
      row.tokens = tokens;
      row.time_us =
          replayed(queue.stream, [&] { run_cuda(p.work, profile::nvidia, queue.stream); });
      decode.rows.push_back(row);
    }
  }
  return decode;
}

}  // namespace kvcts
