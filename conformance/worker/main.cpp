// kvcts_worker LIBRARY: loads a candidate and serves its calls to kvcts, which started it. Whatever
// the library does, it does to this process alone.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "conformance/worker/buffers.h"
#include "conformance/worker/cuda_memory.h"
#include "conformance/worker/load.h"

namespace kvcts::worker {
namespace {

status* shown = nullptr;  // the page that kvcts reads once this process is dead

// Notes where, then lets the signal kill.
void note_fault(int signal, siginfo_t* info, void* context) {
  shown->fault_address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  shown->how = access::unknown;
#if defined(__x86_64__)
  const auto* machine = static_cast<const ucontext_t*>(context);
  constexpr long long write_bit = 2;  // of the page fault's error code
  shown->how =
      (machine->uc_mcontext.gregs[REG_ERR] & write_bit) != 0 ? access::write : access::read;
  shown->stack_pointer = static_cast<std::uint64_t>(machine->uc_mcontext.gregs[REG_RSP]);
  constexpr long long general_protection = 13;
  if (machine->uc_mcontext.gregs[REG_TRAPNO] == general_protection) shown->how = access::wild;
#else
  (void)context;
#endif
  shown->faulted = info->si_code > 0 ? 1 : 0;  // not where somebody sent the signal
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);
}

void catch_faults() {
  static std::byte stack[65536];
  const stack_t other{stack, 0, sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

int open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Walks the allocator's structures: glibc aborts where it finds one damaged.
void check_heap() {
  std::vector<void*> blocks;
  for (std::size_t size = 16; size <= std::size_t{1} << 16; size += size / 2) {
    blocks.push_back(std::malloc(size));
  }
  for (void* block : blocks) std::free(block);
}

void put_list(message_writer& to, const char* const* list) {
  std::vector<std::string_view> all;
  for (; list != nullptr && *list != nullptr; ++list) all.emplace_back(*list);
  to.number(all.size());
  for (const std::string_view one : all) to.text(one);
}

message_writer introduction(const kvcts_candidate_info& info) {
  message_writer made;
  made.number(1).text(info.name).text(info.version).text(info.vendor != nullptr ? info.vendor : "");
  made.number(static_cast<std::uint64_t>(info.device.type));
  put_list(made, info.kernels);
  put_list(made, info.profiles);
  put_list(made, info.flags_not_claimed);
  return made;
}

struct attribute {
  std::string name;
  kvcts_kind kind = KVCTS_INTEGER;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
};

struct request {
  std::string kernel, profile;
  std::vector<argument> arguments;
  std::vector<attribute> attributes;
  std::vector<int> descriptors;
};

std::vector<std::int64_t> read_list(message_reader& from) {
  std::vector<std::int64_t> list(std::min<std::uint64_t>(from.number(), most_arguments));
  for (std::int64_t& one : list) one = from.integer();
  return list;
}

request read_request(received got) {
  message_reader from(std::move(got.bytes));
  request made;
  made.descriptors = std::move(got.descriptors);
  made.kernel = from.text();
  made.profile = from.text();
  made.arguments.resize(std::min<std::uint64_t>(from.number(), most_arguments));
  std::size_t next_descriptor = 0;
  for (argument& a : made.arguments) {
    a.name = from.text();
    a.role = static_cast<kvcts_role>(from.number());
    a.type = static_cast<kvcts_dtype>(from.number());
    a.shape = read_list(from);
    a.strides = read_list(from);
    a.has_holes = from.number() != 0;
    a.file = a.has_holes ? made.descriptors.at(next_descriptor++) : arena_fd;
    a.file_offset = from.number();
    a.mapped_bytes = from.number();
    a.element_offset = from.number();
  }
  made.attributes.resize(std::min<std::uint64_t>(from.number(), most_arguments));
  for (attribute& a : made.attributes) {
    a.name = from.text();
    a.kind = static_cast<kvcts_kind>(from.number());
    if (a.kind == KVCTS_INTEGER) a.integer = from.integer();
    if (a.kind == KVCTS_REAL) a.real = from.real();
    if (a.kind == KVCTS_TEXT) a.text = from.text();
  }
  return made;
}

struct outcome_of_call {
  kvcts_answer answer = KVCTS_OK;
  std::string message;
  int left_open = 0;  // descriptors
};

outcome_of_call run(request& asked, const candidate_library& candidate, cuda_memory* device) {
  const mapped_arguments mapped(asked.arguments, device != nullptr, *shown);
  std::vector<kvcts_argument> arguments;
  std::vector<std::byte*> starts;
  for (std::size_t i = 0; i < asked.arguments.size(); ++i) {
    argument& a = asked.arguments[i];
    starts.push_back(device != nullptr ? device->copy_in(a, mapped.at(i)) : mapped.at(i));
    kvcts_argument one{};
    one.name = a.name.c_str();
    one.role = a.role;
    one.type = a.type;
    one.tensor.data = starts.back() + a.element_offset;
    one.tensor.device = candidate.info->device;
    one.tensor.ndim = static_cast<std::int32_t>(a.shape.size());
    one.tensor.storage = storage_of(a.type);
    one.tensor.shape = a.shape.data();
    one.tensor.strides = a.strides.data();
    arguments.push_back(one);
  }
  std::vector<kvcts_attribute> attributes;
  for (const attribute& a : asked.attributes) {
    attributes.push_back({a.name.c_str(), a.kind, a.integer, a.real,
                          a.kind == KVCTS_TEXT ? a.text.c_str() : nullptr});
  }
  char message[message_bytes] = {};
  kvcts_call call{};
  call.struct_bytes = sizeof call;
  call.abi_version = KVCTS_ABI_VERSION;
  call.kernel = asked.kernel.c_str();
  call.profile = asked.profile.c_str();
  call.arguments = arguments.data();
  call.argument_count = static_cast<std::int32_t>(arguments.size());
  call.attribute_count = static_cast<std::int32_t>(attributes.size());
  call.attributes = attributes.data();
  call.message = message;
  call.message_bytes = sizeof message;
  if (device != nullptr) {
    device->wait();
    call.stream = device->stream();
  }

  outcome_of_call result;
  const int before = open_descriptors();
  shown->now = phase::calling;
  result.answer = called("kvcts_candidate_run", candidate.run, &call);
  if (device != nullptr) device->wait();
  shown->now = phase::after_call;
  check_heap();
  result.left_open = open_descriptors() - before;
  message[sizeof message - 1] = '\0';
  result.message = message;
  for (std::size_t i = 0; device != nullptr && i < starts.size(); ++i) {
    device->copy_out(asked.arguments[i], mapped.at(i), starts[i]);
  }
  if (device != nullptr) device->free_all();
  return result;
}

void prepare_process() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Where memory runs out, it is this process that goes.
  if (FILE* score = std::fopen("/proc/self/oom_score_adj", "w")) {
    std::fputs("1000", score);
    std::fclose(score);
  }
  for (const int fd : {socket_fd, arena_fd, status_fd}) fcntl(fd, F_SETFD, FD_CLOEXEC);
  catch_faults();
}

int serve(const char* path) {
  candidate_library candidate;
  std::unique_ptr<cuda_memory> device;
  try {
    candidate = load(path);
    const kvcts_device where = candidate.info->device;
    if (where.type == KVCTS_CUDA) {
      device = std::make_unique<cuda_memory>(where.id);
    } else if (where.type != KVCTS_CPU) {
      throw std::runtime_error("asks for device type " + std::to_string(where.type) +
                               ": this version serves KVCTS_CPU and KVCTS_CUDA");
    }
  } catch (const std::runtime_error& error) {
    send_message(socket_fd, message_writer().number(0).text(error.what()), {});
    return 0;
  }
  shown->now = phase::idle;
  send_message(socket_fd, introduction(*candidate.info), {});
  for (;;) {
    request asked = read_request(receive_message(socket_fd));
    message_writer reply;
    try {
      const outcome_of_call result = run(asked, candidate, device.get());
      reply.number(1).number(static_cast<std::uint64_t>(result.answer)).text(result.message);
      reply.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(result.left_open)));
    } catch (const std::runtime_error& error) {
      reply.number(0).text(error.what());
    }
    for (const int fd : asked.descriptors) close(fd);
    shown->now = phase::idle;
    send_message(socket_fd, reply, {});
  }
}

}  // namespace
}  // namespace kvcts::worker

int main(int argc, char** argv) {
  using namespace kvcts::worker;
  int kind = 0;
  socklen_t size = sizeof kind;
  if (argc != 2 || getsockopt(socket_fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0) {
    std::fputs("kvcts_worker is started by kvcts: use kvcts run --candidate LIBRARY\n", stderr);
    return 2;
  }
  void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, status_fd, 0);
  if (page == MAP_FAILED) return 2;
  shown = new (page) status();
  prepare_process();
  try {
    return serve(argv[1]);
  } catch (const broken_connection&) {
    // A candidate's exit handlers are not run.
    _exit(lost_connection_status);
  }
}
