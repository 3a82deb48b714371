#include "vectors/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "vectors/file.h"
#include "vectors/hdf5_object.h"
#include "vectors/reduction_trees.h"

extern "C" char** environ;

namespace kvcts {
namespace {

using clock = std::chrono::steady_clock;

constexpr int exit_bad_input = 2;
constexpr long default_seconds = 120;

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

long seconds_allowed() {
  const char* text = std::getenv("KVCTS_PROBE_SECONDS");
  if (text == nullptr) return default_seconds;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 1 || value > 1000000) {
    throw input_error("KVCTS_PROBE_SECONDS=" + hdf5::shortened(text) +
                      ": give whole seconds from 1 to 1000000");
  }
  return value;
}

constexpr const char* child_mark = "KVCTS_PROBE_CHILD";  // in the child's environment

std::string program_to_run(const std::string& program) {
  if (!program.empty()) return program;
  const char* named = std::getenv("KVCTS_PROBE_PROGRAM");
  return named != nullptr && *named != '\0' ? named : "/proc/self/exe";
}

struct child_end {
  bool timed_out = false;
  int status = 0;    // of waitpid
  std::string said;  // standard error but for progress, its first 64 KiB
};

// Ended and waited for with its owner.
class child_process {
 public:
  explicit child_process(pid_t pid) : pid_(pid) {}
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  // True where it has ended.
  bool ended(int& status, const std::string& path) {
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got < 0 && errno != EINTR) {
      throw input_error(
          path + ": how the child that opens it ended cannot be seen: " + std::strerror(errno));
    }
    if (got == pid_) pid_ = 0;
    return got > 0;
  }

 private:
  pid_t pid_;
};

// A line of progress on the child's standard error.
constexpr char progress_mark = '\1';

void say_progress(const probe_progress& p) {
  std::fprintf(
      stderr, "%c%llu %llu %llu\n", progress_mark, static_cast<unsigned long long>(p.cases),
      static_cast<unsigned long long>(p.all_cases), static_cast<unsigned long long>(p.bytes));
}

// Takes whole lines of progress off `text`; true where there was one.
bool take_progress(std::string& text, probe_progress& p) {
  bool any = false;
  for (std::size_t end = 0;
       !text.empty() && text[0] == progress_mark && (end = text.find('\n')) != std::string::npos;
       text.erase(0, end + 1)) {
    unsigned long long cases = 0, all = 0, bytes = 0;
    if (std::sscanf(text.c_str() + 1, "%llu %llu %llu", &cases, &all, &bytes) == 3) {
      p = {cases, all, bytes};
      any = true;
    }
  }
  return any;
}

// Runs `program probe PATH` with its standard error in a pipe.
child_end run_probe(const std::string& program, const std::string& path, long seconds,
                    const std::function<void(const probe_progress&)>& progress) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw input_error(path + ": no pipe for the child that opens it: " + std::strerror(errno));
  }
  descriptor reading(ends[0]);
  descriptor writing(ends[1]);
  std::vector<char*> variables;
  for (char** v = environ; *v != nullptr; ++v) variables.push_back(*v);
  std::string mark = std::string(child_mark) + "=1";
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDERR_FILENO);
  std::string self = program;
  std::string subcommand = "probe";
  // A name that starts with a dash is not an option.
  std::string file = !path.empty() && path[0] == '-' ? "./" + path : path;
  std::array<char*, 4> arguments = {self.data(), subcommand.data(), file.data(), nullptr};
  pid_t pid = 0;
  const int failed =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  writing.close();
  if (failed != 0) {
    throw input_error(path + ": the child that opens it cannot be started (" + program +
                      "): " + std::strerror(failed));
  }
  child_process child(pid);

  child_end end;
  probe_progress seen;
  const auto allowed = std::chrono::seconds(seconds);
  clock::time_point deadline = clock::now() + allowed;
  const auto left = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
  };
  // Until the child closes its standard error, which is when it ends.
  std::array<char, 4096> piece;
  for (bool open = true; open && !end.timed_out;) {
    pollfd waiting{reading.get(), POLLIN, 0};
    const auto wait = std::clamp<long long>(left(), 0, 500);
    const int ready = ::poll(&waiting, 1, static_cast<int>(wait));
    if (ready > 0) {
      const ssize_t got = ::read(reading.get(), piece.data(), piece.size());
      if (got > 0 && end.said.size() < 65536) end.said.append(piece.data(), got);
      open = got > 0 || (got < 0 && errno == EINTR);
      if (take_progress(end.said, seen)) deadline = clock::now() + allowed;
    }
    if (progress) progress(seen);
    end.timed_out = open && left() <= 0;
  }
  while (!end.timed_out) {
    if (child.ended(end.status, path)) return end;
    end.timed_out = left() <= 0;
    ::usleep(1000);
  }
  return end;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A damaged file may ask for any amount of memory: past this, allocation fails instead of the
// machine. AddressSanitizer reserves terabytes of addresses, so it has no such limit.
void limit_address_space() {
#if !defined(__SANITIZE_ADDRESS__)
  const auto pages = static_cast<rlim_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return;
  const rlim_t wanted = pages * page + (rlim_t{4} << 30);
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

// By pieces: a tensor may be larger than the memory.
class decoder {
 public:
  explicit decoder(std::uint64_t cases) { done_.all_cases = cases; }

  void decode(const case_outline& c) {
    for (const std::vector<file_tensor>* group : {&c.inputs, &c.expected, &c.actual}) {
      for (const file_tensor& t : *group) decode(t);
    }
    ++done_.cases;
    say();
  }

 private:
  void decode(const file_tensor& t) {
    const std::uint64_t piece = std::min(t.piece(), t.bytes());
    bytes_.resize(std::max<std::size_t>(bytes_.size(), piece));
    for (std::uint64_t at = 0; at < t.bytes(); at += piece) {
      const std::uint64_t size = std::min(piece, t.bytes() - at);
      t.read({at, size}, bytes_.data());
      done_.bytes += size;
      say();
    }
  }
  void say() {
    const clock::time_point now = clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    say_progress(done_);
  }

  probe_progress done_;
  clock::time_point last_ = clock::now();
  std::vector<std::byte> bytes_;
};

void decode_everything(const std::string& path) {
  if (schema_of(path) == "kvcts-reduction-trees") {
    const reduction_tree_file file(path);
    for (const std::string& group : file.groups()) file.read(group);
    return;
  }
  const vector_file file(path);
  decoder all(file.cases().size());
  for (const vector_file::entry& which : file.cases()) all.decode(file.outline(which));
}

}  // namespace

int probe_main(const char* path) {
  // No core file for a crash that is expected.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  limit_address_space();
  try {
    decode_everything(path);
  } catch (const input_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_bad_input;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: needs more memory than there is: write smaller cases\n", path);
    return exit_bad_input;
  }
  return 0;
}

void probe_vectors(const std::string& path, const std::string& program,
                   const std::function<void(const probe_progress&)>& progress) {
  // A program that does not know `probe` would start over, and its child too, without end.
  if (std::getenv(child_mark) != nullptr) {
    throw std::logic_error("a probe of " + path + " inside a probe: " + program_to_run(program) +
                           " does not answer to `probe`");
  }
  const long seconds = seconds_allowed();
  const child_end end = run_probe(program_to_run(program), path, seconds, progress);
  if (end.timed_out) {
    throw input_error(path + " is damaged: reading it took longer than " + std::to_string(seconds) +
                      " s; write it again (KVCTS_PROBE_SECONDS allows more)");
  }
  if (WIFSIGNALED(end.status)) {
    throw input_error(path + " is damaged: reading it crashed the HDF5 library (signal " +
                      std::to_string(WTERMSIG(end.status)) + "); write it again");
  }
  const int status = WEXITSTATUS(end.status);
  if (status == 0) return;
  if (status == exit_bad_input && !end.said.empty()) throw input_error(first_line(end.said));
  throw input_error(path + " is damaged: reading it ended the HDF5 library (exit status " +
                    std::to_string(status) + "); write it again");
}

}  // namespace kvcts
