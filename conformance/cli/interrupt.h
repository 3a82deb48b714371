// SIGINT and SIGTERM as an exception, so that what a command began to write is taken away.
#pragma once

#include <exception>

namespace kvcts {

struct interrupted : std::exception {
  explicit interrupted(int by) : signal(by) {}
  const char* what() const noexcept override { return "interrupted"; }
  int signal;
};

// While it lives the two signals are kept for throw_if_interrupted(); the second one ends the
// program at once.
class interrupt_guard {
 public:
  interrupt_guard();
  ~interrupt_guard();
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
};

void throw_if_interrupted();

}  // namespace kvcts
