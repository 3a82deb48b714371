// The `cuda` candidate against the reference, on the device.
#include <gtest/gtest.h>

#include "optimized/optimized.h"
#include "optimized/tests/calls.h"

namespace kvcts {
namespace {

class Device : public testing::Test {
 protected:
  void SetUp() override {
    const cuda_status status = cuda_available();
    ASSERT_TRUE(status.available) << status.why_not;
  }
  static void expect_equal(const std::vector<tests::test_call>& calls) {
    for (const tests::test_call& c : calls) {
      for (const profile p : {profile::nvidia, profile::ieee}) {
        EXPECT_EQ(tests::difference(c, p, {{"cuda", run_cuda_on_host_buffers}}), "");
      }
    }
  }
};

TEST_F(Device, Mxfp4QQuantEqualsReference) { expect_equal(tests::query_calls()); }
TEST_F(Device, QuantizeAndInsertEqualsReference) { expect_equal(tests::insert_calls()); }
TEST_F(Device, EveryBf16UnderEveryScale) { expect_equal(tests::exhaustive_calls(1)); }
TEST_F(Device, LargeCalls) { expect_equal(tests::large_calls()); }

}  // namespace
}  // namespace kvcts
