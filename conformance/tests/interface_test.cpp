// The C interface: its layout, and the worker's messages.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

#include "conformance/candidate/kvcts_candidate.h"
#include "conformance/worker/protocol.h"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
static_assert(sizeof(kvcts_tensor) == sizeof(DLTensor));
static_assert(offsetof(kvcts_tensor, data) == offsetof(DLTensor, data));
static_assert(offsetof(kvcts_tensor, ndim) == offsetof(DLTensor, ndim));
static_assert(offsetof(kvcts_tensor, storage) == offsetof(DLTensor, dtype));
static_assert(offsetof(kvcts_tensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(kvcts_tensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(kvcts_tensor, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(sizeof(kvcts_storage_type) == sizeof(DLDataType));
static_assert(offsetof(kvcts_storage_type, bits) == offsetof(DLDataType, bits));
static_assert(offsetof(kvcts_storage_type, lanes) == offsetof(DLDataType, lanes));
static_assert(static_cast<int>(KVCTS_CPU) == kDLCPU && static_cast<int>(KVCTS_CUDA) == kDLCUDA &&
              static_cast<int>(KVCTS_ROCM) == kDLROCM);
#endif

namespace kvcts {
namespace {

// What a built candidate relies on: a change of these needs another KVCTS_ABI_VERSION.
TEST(interface, layout_of_version_1_stays) {
  static_assert(KVCTS_ABI_VERSION == 1);
  EXPECT_EQ(sizeof(kvcts_tensor), 48u);
  EXPECT_EQ(sizeof(kvcts_argument), 64u);
  EXPECT_EQ(offsetof(kvcts_argument, tensor), 16u);
  EXPECT_EQ(sizeof(kvcts_attribute), 40u);
  EXPECT_EQ(sizeof(kvcts_call), 72u);
  EXPECT_EQ(offsetof(kvcts_call, stream), 48u);
  EXPECT_EQ(sizeof(kvcts_candidate_info), 64u);
  EXPECT_EQ(offsetof(kvcts_candidate_info, kernels), 40u);
}

TEST(worker_messages, come_back_with_their_descriptors) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  worker::message_writer message;
  message.number(7).text("q_scale").real(-0.5);
  worker::send_message(ends[0], message, {STDIN_FILENO, STDIN_FILENO});
  worker::received got = worker::receive_message(ends[1]);
  EXPECT_EQ(got.descriptors.size(), 2u);
  for (const int fd : got.descriptors) EXPECT_EQ(close(fd), 0);
  worker::message_reader reader(got.bytes);
  EXPECT_EQ(reader.number(), 7u);
  EXPECT_EQ(reader.text(), "q_scale");
  EXPECT_EQ(reader.real(), -0.5);
  EXPECT_THROW(reader.number(), worker::broken_connection);
  close(ends[0]);
  EXPECT_THROW(worker::receive_message(ends[1]), worker::broken_connection);
  close(ends[1]);
}

// A length from the other side is not believed.
TEST(worker_messages, a_text_longer_than_its_message_is_refused) {
  worker::message_writer message;
  message.number(~std::uint64_t{0});
  worker::message_reader reader(message.bytes());
  EXPECT_THROW(reader.text(), worker::broken_connection);
}

}  // namespace
}  // namespace kvcts
