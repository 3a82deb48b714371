// What kvcts and its worker say to each other: messages over a socket, one datagram each, with
// file descriptors beside them; bulk data is in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvcts::worker {

// Descriptors that the worker starts with.
constexpr int socket_fd = 3;
constexpr int arena_fd = 4;   // memory of the buffers
constexpr int status_fd = 5;  // one page: `status`

constexpr std::size_t page_bytes = 4096;
// Between buffers in the worker, without access.
constexpr std::size_t guard_bytes = std::size_t{1} << 20;
constexpr std::size_t most_arguments = 64;
constexpr std::size_t message_bytes = 1024;  // of a candidate's text
// How the worker ends where its socket fails, which a candidate can do to it.
constexpr int lost_connection_status = 117;

// `after_call`: the candidate has returned, and its reply is not sent.
enum class phase : std::uint32_t { loading, idle, calling, after_call };
// `wild`: not the address of a page, so that the machine tells none.
enum class access : std::uint32_t { unknown, read, write, wild };

// Written by the worker, read when it has died. Lock-free words alone: a signal handler writes it.
struct status {
  phase now = phase::loading;
  std::uint32_t faulted = 0;  // 1 where a memory fault was caught
  access how = access::unknown;
  std::uint32_t reserved = 0;
  std::uint64_t fault_address = 0;
  std::uint64_t stack_pointer = 0;               // when it happened; 0: not known
  std::uint64_t mapped_at[most_arguments] = {};  // where each argument's mapping starts
};
static_assert(sizeof(status) <= page_bytes);

// The other side ended, or sent what is no message.
class broken_connection : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class message_writer {
 public:
  message_writer& number(std::uint64_t value);
  message_writer& real(double value);
  message_writer& text(std::string_view value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws broken_connection where the message is shorter than what is asked of it.
class message_reader {
 public:
  explicit message_reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t number();
  std::int64_t integer() { return static_cast<std::int64_t>(number()); }
  double real();
  std::string text();

 private:
  const char* take(std::size_t count);
  std::string bytes_;
  std::size_t at_ = 0;
};

// Throw broken_connection.
void send_message(int socket, const message_writer& message, const std::vector<int>& descriptors);
struct received {
  std::string bytes;
  std::vector<int> descriptors;  // now the receiver's own, close-on-exec
};
received receive_message(int socket);

}  // namespace kvcts::worker
