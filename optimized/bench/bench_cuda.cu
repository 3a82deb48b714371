#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

// What CUDA made, until the end of its scope.
template <class Handle, cudaError_t (*Destroy)(Handle)>
struct owner {
  Handle handle = nullptr;
  owner() = default;
  ~owner() {
    if (handle != nullptr) Destroy(handle);
  }
  owner(const owner&) = delete;
  owner& operator=(const owner&) = delete;
};
using graph_owner = owner<cudaGraph_t, cudaGraphDestroy>;
using ready_graph_owner = owner<cudaGraphExec_t, cudaGraphExecDestroy>;
struct stream_owner : owner<cudaStream_t, cudaStreamDestroy> {
  stream_owner() { cuda_check(cudaStreamCreate(&handle), "cudaStreamCreate"); }
};
struct event_owner : owner<cudaEvent_t, cudaEventDestroy> {
  event_owner() { cuda_check(cudaEventCreate(&handle), "cudaEventCreate"); }
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

// How long the stream is kept busy while that many launches are queued.
std::uint64_t queueing_nanoseconds(int launches) {
  return 20000 + 8000 * static_cast<std::uint64_t>(launches);
}

struct timing {
  double us = 0;        // a launch
  bool queued = false;  // all launches before the first began
};

// Of `launches` queued by `work`.
template <class Work>
timing timed(cudaStream_t stream, int launches, const Work& work, std::uint64_t nanoseconds) {
  const event_owner begin;
  const event_owner end;
  hold<<<1, 1, 0, stream>>>(nanoseconds);
  cuda_check(cudaGetLastError(), "hold");
  cuda_check(cudaEventRecord(begin.handle, stream), "cudaEventRecord");
  work();
  cuda_check(cudaEventRecord(end.handle, stream), "cudaEventRecord");
  timing to;
  to.queued = cudaEventQuery(begin.handle) == cudaErrorNotReady;
  cudaGetLastError();  // which "not ready" is to some versions
  cuda_check(cudaEventSynchronize(end.handle), "cudaEventSynchronize");
  float milliseconds = 0;
  cuda_check(cudaEventElapsedTime(&milliseconds, begin.handle, end.handle), "cudaEventElapsedTime");
  to.us = 1000.0 * milliseconds / launches;
  return to;
}
template <class Work>
double timed(cudaStream_t stream, int launches, const Work& work) {
  return timed(stream, launches, work, queueing_nanoseconds(launches)).us;
}

// --- The second candidate.

__global__ void find_difference(const unsigned char* a, const unsigned char* b, std::size_t bytes,
                                int* differs) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes;
       i += step) {
    if (a[i] != b[i]) *differs = 1;
  }
}

std::vector<std::string> differing(const call& a, const call& b) {
  std::vector<std::string> names;
  const device_memory differs(sizeof(int));
  for (const auto& [name, v] : a.tensors) {
    cuda_check(cudaMemset(differs.start(), 0, differs.bytes()), "cudaMemset");
    find_difference<<<1024, 256>>>(reinterpret_cast<const unsigned char*>(v.storage),
                                   reinterpret_cast<const unsigned char*>(b.tensor(name).storage),
                                   v.storage_bytes, reinterpret_cast<int*>(differs.start()));
    cuda_check(cudaGetLastError(), "comparing bytes");
    int differ = 0;
    cuda_check(cudaMemcpy(&differ, differs.start(), sizeof differ, cudaMemcpyDefault),
               "comparing bytes");
    if (differ != 0) names.push_back(name);
  }
  return names;
}

// Waits for what the second candidate queued. What goes wrong on the device here does not go away.
void wait_for(const vs_candidate& vs, const std::string& kernel) {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) return;
  throw std::runtime_error(vs.name() + ": its " + kernel + " ends in " + cudaGetErrorName(status) +
                           " (" + cudaGetErrorString(status) +
                           "), which ends this bench: try it with kvcts run --candidate first");
}

// Its calls over sets of buffers of its own, as ours has them.
class vs_calls {
 public:
  vs_calls(const vs_candidate& vs, const bench_problem& from, int sets, cudaStream_t stream) {
    if (!vs.claims(from.work.kernel)) {
      row.answer.state = vs_state::not_claimed;
      return;
    }
    problems_.reserve(static_cast<std::size_t>(sets));
    for (int i = 0; i < sets; ++i) {
      problems_.emplace_back(from);
      calls_.push_back(vs.prepared(problems_.back().work, stream));
    }
    cuda_check(cudaDeviceSynchronize(), "filling the buffers");
  }

  // One call of each on equal bytes, in buffers that are not used before.
  void check(const vs_candidate& vs, const device_problem& ours,
             const std::set<std::string>& outputs, cudaStream_t stream) {
    if (!works()) return;
    const call& theirs = problems_.front().work;
    for (const std::string& name : outputs) {
      const tensor_view& v = ours.work.tensor(name);
      cuda_check(cudaMemset(v.storage, 0xCC, v.storage_bytes), "cudaMemset");
      cuda_check(cudaMemset(theirs.tensor(name).storage, 0xCC, v.storage_bytes), "cudaMemset");
    }
    run_cuda(ours.work, profile::nvidia, stream);
    cuda_check(cudaDeviceSynchronize(), "our call");
    launch(0);
    cudaGetLastError();  // of a launch that it reports itself
    wait_for(vs, ours.work.kernel);
    if (works()) row.differing = differing(ours.work, theirs);
  }

  bool works() const { return row.answer.state == vs_state::measured; }
  // Nothing once a call has failed.
  void launch(int set) {
    if (works()) row.answer = calls_[static_cast<std::size_t>(set)]();
  }

  vs_row row;

 private:
  std::vector<device_problem> problems_;
  std::vector<std::function<vs_answer()>> calls_;
};

// How long the stream is to be kept busy while `work` queues its launches, by trial. What cannot be
// queued ahead (it waits for the device itself) gets what ours gets.
template <class Work>
std::uint64_t tried_nanoseconds(cudaStream_t stream, int launches, const Work& work) {
  constexpr std::uint64_t longest = 50'000'000;
  const std::uint64_t usual = queueing_nanoseconds(launches);
  timed(stream, launches, work, usual);  // whatever it does once
  for (std::uint64_t one = usual; one < longest; one *= 4) {
    if (timed(stream, launches, work, one).queued) return one;
  }
  return usual;
}

std::int64_t l2_bytes() {
  int bytes = 0;
  cuda_check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0), "size of the L2 cache");
  return bytes;
}

// The launches take sets of buffers in turn, so that the L2 cache holds neither inputs nor outputs
// of the next one.
cuda_bench_row measured(const bench_op& op, std::int64_t tokens, const vs_candidate* vs) {
  constexpr int samples = 31;
  constexpr double longest = 10e6;  // us for a second candidate that is slow
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
  std::optional<vs_calls> theirs;
  if (vs != nullptr) {
    theirs.emplace(*vs, on_device, row.sets, queue.handle);
    theirs->check(*vs, problems.front(), p.outputs, queue.handle);
  }

  const auto run = [&] {
    for (int i = 0; i < launches; ++i) {
      run_cuda(problems[static_cast<std::size_t>(i % row.sets)].work, profile::nvidia,
               queue.handle);
    }
  };
  const auto copy = [&] {
    for (int i = 0; i < launches; ++i) {
      const auto set = static_cast<std::size_t>(i % row.sets);
      cuda_check(cudaMemcpyAsync(copies[set].start(), sources[set].start(), sources[set].bytes(),
                                 cudaMemcpyDeviceToDevice, queue.handle),
                 "device-to-device copy");
    }
  };
  const auto run_theirs = [&] {
    for (int i = 0; i < launches; ++i) theirs->launch(i % row.sets);
  };
  std::uint64_t busy = 0;
  if (theirs && theirs->works()) {
    busy = tried_nanoseconds(queue.handle, launches, run_theirs);
    wait_for(*vs, op.kernel);
  }
  std::vector<double> run_times;
  std::vector<double> copy_times;
  std::vector<double> their_times;
  double spent = 0;
  for (int sample = 0; sample < samples + 3; ++sample) {  // in turn: both see the same clocks
    const double ran = timed(queue.handle, launches, run);
    const double copied = timed(queue.handle, launches, copy);
    timing their;
    const bool has_theirs = theirs && theirs->works() && spent < longest;
    if (has_theirs) their = timed(queue.handle, launches, run_theirs, busy);
    spent += their.us * launches;
    if (sample < 3 && spent < longest) continue;  // warm-up
    run_times.push_back(ran);
    copy_times.push_back(copied);
    if (!has_theirs) continue;
    their_times.push_back(their.us);
    theirs->row.queued = theirs->row.queued && their.queued;
  }
  row.time_us = median(run_times);
  row.copy_us = median(copy_times);
  row.share_of_copy = row.copy_us / row.time_us;
  if (theirs) {
    wait_for(*vs, op.kernel);
    row.vs = std::move(theirs->row);
    if (row.vs->answer.state == vs_state::measured) {
      row.vs->time_us = median(their_times);
      row.vs->share_of_copy = row.copy_us / row.vs->time_us;
      row.vs->ratio = row.vs->time_us / row.time_us;
    }
  }
  return row;
}

// Many launches in a graph, replayed: a launch's time in it, sample by sample.
class replayed_graph {
 public:
  static constexpr int samples = 31;

  // Throws what `launch` throws, and std::runtime_error where what it does cannot be captured; the
  // stream is usable again then.
  template <class Launch>
  replayed_graph(cudaStream_t stream, const Launch& launch) : stream_(stream) {
    cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    try {
      for (int i = 0; i < launches; ++i) launch();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_.handle);
      cudaGetLastError();  // so that no later check meets it
      throw;
    }
    cuda_check(cudaStreamEndCapture(stream, &graph_.handle), "capture");
    cuda_check(cudaGraphInstantiate(&ready_.handle, graph_.handle, 0), "cudaGraphInstantiate");
  }
  replayed_graph(const replayed_graph&) = delete;
  replayed_graph& operator=(const replayed_graph&) = delete;

  std::size_t nodes() const {
    std::size_t count = 0;
    cuda_check(cudaGraphGetNodes(graph_.handle, nullptr, &count), "nodes of a graph");
    return count;
  }
  void sample() {
    times_.push_back(timed(stream_, launches, [&] {
      cuda_check(cudaGraphLaunch(ready_.handle, stream_), "cudaGraphLaunch");
    }));
  }
  // Of all samples but the first three.
  double time_us() const { return median({times_.begin() + 3, times_.end()}); }

 private:
  static constexpr int launches = 20;
  cudaStream_t stream_;
  graph_owner graph_;
  ready_graph_owner ready_;
  std::vector<double> times_;
};

template <class Launch>
double replayed(cudaStream_t stream, const Launch& launch) {
  replayed_graph graph(stream, launch);
  for (int sample = 0; sample < replayed_graph::samples + 3; ++sample) graph.sample();
  return graph.time_us();
}

// Into `graph`, or why not into the row.
void capture(vs_calls& theirs, cudaStream_t stream, std::optional<replayed_graph>& graph) {
  std::string why;
  try {
    graph.emplace(stream, [&] { theirs.launch(0); });
    if (!theirs.works()) {
      why = theirs.row.answer.message;
    } else if (graph->nodes() == 0) {
      why = "its work is not on the stream that it is handed";
    } else {
      return;
    }
    graph.reset();
  } catch (const std::runtime_error& error) {
    why = theirs.works() ? error.what() : theirs.row.answer.message;
  }
  theirs.row.answer = {vs_state::not_captured, why};
}

cuda_decode_row decoded(const bench_op& op, std::int64_t tokens, cudaStream_t stream,
                        const vs_candidate* vs) {
  const bench_problem p = op.make(op, tokens);
  const device_problem ours(p);
  cuda_check(cudaDeviceSynchronize(), "filling the buffers");
  cuda_decode_row row;
  row.op = op.name;
  row.tokens = tokens;
  std::optional<vs_calls> theirs;
  std::optional<replayed_graph> their_graph;
  if (vs != nullptr) {
    theirs.emplace(*vs, p, 1, stream);
    theirs->check(*vs, ours, p.outputs, stream);
    if (theirs->works()) capture(*theirs, stream, their_graph);
    wait_for(*vs, op.kernel);
  }
  replayed_graph graph(stream, [&] { run_cuda(ours.work, profile::nvidia, stream); });
  for (int sample = 0; sample < replayed_graph::samples + 3; ++sample) {
    graph.sample();
    if (their_graph) their_graph->sample();
  }
  row.time_us = graph.time_us();
  if (!theirs) return row;
  wait_for(*vs, op.kernel);
  row.vs = std::move(theirs->row);
  if (their_graph) {
    row.vs->time_us = their_graph->time_us();
    row.vs->ratio = row.vs->time_us / row.time_us;
  }
  return row;
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
      rows.push_back(measured(op, tokens, choice.vs));
    }
  }
  return rows;
}

cuda_decode bench_cuda_decode(const bench_choice& choice) {
  require_device();
  const stream_owner queue;
  cuda_decode decode;
  decode.empty_us = replayed(queue.handle, [&] { nothing<<<1, 32, 0, queue.handle>>>(); });
  decode.chase_us = chased(queue.handle);
  for (const bench_op& op : bench_ops()) {
    if (!op.decodes || !is_chosen(choice, op)) continue;
    for (const std::int64_t tokens : {1, 8, 64}) {
      if (choice.progress) choice.progress(op.name + " " + std::to_string(tokens));
      decode.rows.push_back(decoded(op, tokens, queue.handle, choice.vs));
    }
  }
  return decode;
}

}  // namespace kvcts
