#include "conformance/cli/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace kvcts {
namespace {

volatile std::sig_atomic_t caught = 0;

extern "C" void keep_signal(int signal) {
  if (caught != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  caught = signal;
}

}  // namespace

interrupt_guard::interrupt_guard() {
  caught = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    // One that the caller has set to be ignored (nohup, a background job) stays so.
    if (std::signal(signal, keep_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

interrupt_guard::~interrupt_guard() {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void throw_if_interrupted() {
  if (caught != 0) throw interrupted(caught);
}

}  // namespace kvcts
