#include "conformance/candidate/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "reference/layout/tensor.h"

extern "C" char** environ;

namespace kvcts {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t most_said = 8192;

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("a worker cannot be started: " + what + ": " + std::strerror(errno));
}

// Above the numbers that the worker gets, so that none is overwritten before it is copied.
int moved_up(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 64);
  close(fd);
  if (moved < 0) refuse("descriptors");
  return moved;
}

std::string last_line(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  text.erase(0, text.find_last_of('\n') + 1);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.substr(0, 300);
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* meaning = sigdescr_np(signal);
  return fmt::format("killed by SIG{} ({})", name != nullptr ? name : std::to_string(signal),
                     meaning != nullptr ? meaning : "unknown signal");
}

// A worker is killed when the thread that started it ends, which is to be when this process ends:
// one thread starts them all, and waits for the next one for ever.
void on_starting_thread(const std::function<void()>& work) {
  struct starter {
    std::mutex guard;
    std::condition_variable changed;
    const std::function<void()>* work = nullptr;

    starter() {
      std::thread([this] {
        std::unique_lock<std::mutex> hold(guard);
        for (;;) {
          changed.wait(hold, [this] { return work != nullptr; });
          (*work)();
          work = nullptr;
          changed.notify_all();
        }
      }).detach();
    }
  };
  static auto* const only = new starter;
  std::unique_lock<std::mutex> hold(only->guard);
  only->changed.wait(hold, [] { return only->work == nullptr; });
  only->work = &work;
  only->changed.notify_all();
  only->changed.wait(hold, [&] { return only->work != &work; });
}

}  // namespace

std::string worker_program() {
  namespace fs = std::filesystem;
  const char* named = std::getenv("KVCTS_WORKER");
  std::error_code error;
  const fs::path program =
      named != nullptr && *named != '\0'
          ? fs::path(named)
          : fs::read_symlink("/proc/self/exe", error).parent_path() / "kvcts_worker";
  if (access(program.c_str(), X_OK) == 0) return program.string();
  throw input_error(program.string() +
                    ": the program that runs candidates from outside is not there; it is built and "
                    "installed beside kvcts (or named by KVCTS_WORKER)");
}

std::string worker_end::text(double seconds) const {
  std::string what;
  if (timed_out) {
    what = fmt::format("no answer within {} s (--timeout allows more)", seconds);
  } else if (WIFSIGNALED(status)) {
    what = signal_text(WTERMSIG(status));
    if (last_seen.now == worker::phase::after_call) {
      what = "the heap is damaged after the call: " + what;
    }
  } else if (WEXITSTATUS(status) == worker::lost_connection_status) {
    what = "closed or used a file descriptor that is not its own";
  } else {
    what = fmt::format("ended its process: exit({})", WEXITSTATUS(status));
  }
  if (!last_words.empty()) what += fmt::format("; it said: {}", last_words);
  return what;
}

worker_process::worker_process(const std::string& library, int arena, const std::string& visible) {
  const std::string program = worker_program();
  status_file_ = memfd_create("kvcts-status", MFD_CLOEXEC);
  if (status_file_ < 0 || ftruncate(status_file_, worker::page_bytes) != 0) refuse("memory");
  status_file_ = moved_up(status_file_);
  void* page = mmap(nullptr, worker::page_bytes, PROT_READ, MAP_SHARED, status_file_, 0);
  if (page == MAP_FAILED) refuse("memory");
  shown_ = static_cast<worker::status*>(page);
  int sockets[2];
  int pipes[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) refuse("socket");
  socket_ = moved_up(sockets[0]);
  const int its_socket = moved_up(sockets[1]);
  if (pipe2(pipes, O_CLOEXEC) != 0) refuse("pipe");
  output_ = moved_up(pipes[0]);
  const int its_output = moved_up(pipes[1]);
  fcntl(output_, F_SETFL, O_NONBLOCK);
  const int its_arena = fcntl(arena, F_DUPFD_CLOEXEC, 64);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, its_output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, its_output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, its_socket, worker::socket_fd);
  posix_spawn_file_actions_adddup2(&actions, its_arena, worker::arena_fd);
  posix_spawn_file_actions_adddup2(&actions, status_file_, worker::status_fd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own: what it starts ends with it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string name = program;
  std::string path = library;
  std::array<char*, 3> arguments = {name.data(), path.data(), nullptr};
  // Its environment is this one but for the devices.
  std::string devices = "CUDA_VISIBLE_DEVICES=" + visible;
  std::vector<char*> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const bool replaced = std::string_view(*one).substr(0, 21) == "CUDA_VISIBLE_DEVICES=";
    if (visible.empty() || !replaced) variables.push_back(*one);
  }
  if (!visible.empty()) variables.push_back(devices.data());
  variables.push_back(nullptr);
  int failed = 0;
  on_starting_thread([&] {
    failed = posix_spawn(&process_, program.c_str(), &actions, &attributes, arguments.data(),
                         variables.data());
  });
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  for (const int fd : {its_socket, its_output, its_arena}) close(fd);
  if (failed != 0) {
    process_ = -1;
    errno = failed;
    refuse(program);
  }
}

worker_process::~worker_process() {
  if (process_ > 0) finish(false);
  munmap(shown_, worker::page_bytes);
  for (const int fd : {socket_, output_, status_file_}) {
    if (fd >= 0) close(fd);
  }
}

void worker_process::drain() {
  std::array<char, 4096> piece;
  constexpr int most_pieces = 64;  // it may write for ever
  for (int i = 0; i < most_pieces && output_ >= 0; ++i) {
    const ssize_t got = read(output_, piece.data(), piece.size());
    if (got == 0) close(std::exchange(output_, -1));
    if (got <= 0) return;
    said_.append(piece.data(), static_cast<std::size_t>(got));
    if (said_.size() > most_said) said_.erase(0, said_.size() - most_said / 2);
  }
}

// True where the process has ended.
bool worker_process::reap(bool wait) {
  if (process_ < 0) return true;
  pid_t ended = -1;
  do {
    ended = waitpid(process_, &end_.status, wait ? 0 : WNOHANG);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  kill(-process_, SIGKILL);  // what it left behind
  process_ = -1;
  drain();
  end_.last_words = last_line(said_);
  end_.last_seen = *shown_;
  return true;
}

void worker_process::finish(bool timed_out) {
  end_.timed_out = timed_out;
  kill(-process_, SIGKILL);
  kill(process_, SIGKILL);
  reap(true);
}

bool worker_process::ask(const worker::message_writer& message, const std::vector<int>& descriptors,
                         double seconds, std::string& reply) {
  if (process_ < 0) return false;
  try {
    worker::send_message(socket_, message, descriptors);
  } catch (const worker::broken_connection&) {
    // It ended since the last call; receive() sees how.
  }
  return receive(seconds, reply);
}

bool worker_process::receive(double seconds, std::string& reply) {
  const auto deadline = steady::now() + std::chrono::duration_cast<steady::duration>(
                                            std::chrono::duration<double>(seconds));
  // Now and then it is looked at whether the process lives: what it started may hold its socket.
  constexpr std::chrono::milliseconds look{200};
  // A process that closed its socket but lives is given this long to end.
  steady::time_point gone = steady::time_point::max();
  while (process_ > 0) {
    const steady::time_point now = steady::now();
    if (now >= deadline || now >= gone) {
      finish(now >= deadline && gone == steady::time_point::max());
      return false;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
    pollfd waiting[2] = {{output_, POLLIN, 0}, {socket_, POLLIN, 0}};
    const bool closed = gone != steady::time_point::max();
    poll(waiting, closed ? 1 : 2,
         static_cast<int>(std::min(left, closed ? look / 20 : look).count()));
    if (waiting[0].revents != 0) drain();
    if (!closed && waiting[1].revents != 0) {
      try {
        reply = worker::receive_message(socket_).bytes;
        return true;
      } catch (const worker::broken_connection&) {
        gone = steady::now() + std::chrono::seconds(2);
      }
    }
    if (reap(false)) return false;
  }
  return false;
}

}  // namespace kvcts
