// The process that a candidate's library lives in, seen from kvcts.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "conformance/worker/protocol.h"

namespace kvcts {

// The worker program: $KVCTS_WORKER, or kvcts_worker beside this program. Throws input_error where
// there is none.
std::string worker_program();

// How a worker ended, or that it was ended.
struct worker_end {
  bool timed_out = false;
  int status = 0;            // of waitpid
  std::string last_words;    // the last line of its output that holds anything
  worker::status last_seen;  // as it was then
  // "killed by SIGSEGV (invalid memory access)", "ended itself: exit(3)", ...
  std::string text(double seconds) const;
};

class worker_process {
 public:
  // Starts a process with `arena` as its memory of buffers, and `visible` as the CUDA devices that
  // it sees (empty: those of this process); what it says first is the reply to receive(). Throws
  // std::runtime_error where the system refuses.
  worker_process(const std::string& library, int arena, const std::string& visible);
  ~worker_process();
  worker_process(const worker_process&) = delete;
  worker_process& operator=(const worker_process&) = delete;

  // Sends, then waits for the reply. False where the process has ended instead: see end().
  bool ask(const worker::message_writer& message, const std::vector<int>& descriptors,
           double seconds, std::string& reply);
  bool receive(double seconds, std::string& reply);
  const worker_end& end() const { return end_; }

 private:
  void drain();
  bool reap(bool wait);
  void finish(bool timed_out);

  pid_t process_ = -1;
  int socket_ = -1;
  int output_ = -1;
  int status_file_ = -1;
  worker::status* shown_ = nullptr;
  std::string said_;  // the last few KiB of standard output and error
  worker_end end_;
};

}  // namespace kvcts
