#include "conformance/worker/protocol.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kvcts::worker {
namespace {

constexpr std::size_t most_bytes = 65536;
constexpr std::size_t control_bytes = CMSG_SPACE(most_arguments * sizeof(int));

}  // namespace

message_writer& message_writer::number(std::uint64_t value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes_.append(raw, sizeof raw);
  return *this;
}

message_writer& message_writer::real(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return number(bits);
}

message_writer& message_writer::text(std::string_view value) {
  number(value.size());
  bytes_.append(value);
  return *this;
}

const char* message_reader::take(std::size_t count) {
  if (count > bytes_.size() - at_) throw broken_connection("a message is cut short");
  const char* from = bytes_.data() + at_;
  at_ += count;
  return from;
}

std::uint64_t message_reader::number() {
  std::uint64_t value = 0;
  std::memcpy(&value, take(sizeof value), sizeof value);
  return value;
}

double message_reader::real() {
  const std::uint64_t bits = number();
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::string message_reader::text() {
  const std::uint64_t size = number();
  return {take(size), size};
}

void send_message(int socket, const message_writer& message, const std::vector<int>& descriptors) {
  if (message.bytes().size() > most_bytes || descriptors.size() > most_arguments) {
    throw broken_connection("a message is too long");
  }
  iovec part{const_cast<char*>(message.bytes().data()), message.bytes().size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[control_bytes] = {};
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), bytes);
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) throw broken_connection(std::strerror(errno));
  }
}

received receive_message(int socket) {
  received got;
  got.bytes.resize(most_bytes);
  iovec part{got.bytes.data(), got.bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[control_bytes] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR) size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (size < 0) throw broken_connection(std::strerror(errno));
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    got.descriptors.resize(count);
    std::memcpy(got.descriptors.data(), CMSG_DATA(at), count * sizeof(int));
  }
  if (size == 0) throw broken_connection("the other side has ended");
  got.bytes.resize(static_cast<std::size_t>(size));
  return got;
}

}  // namespace kvcts::worker
