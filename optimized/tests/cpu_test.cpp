// The `cpu` candidate against the reference, for every target of this machine.
#include <gtest/gtest.h>

#include <cstdlib>

#include "optimized/arguments/fused_layout.h"
#include "optimized/optimized.h"
#include "optimized/tests/calls.h"

namespace kvcts {
namespace {

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    try {
      set_cpu_target(name);
      names.emplace_back(name);
    } catch (const input_error&) {
    }
  }
  return names;
}

std::vector<tests::named_runner> candidates(int threads) {
  std::vector<tests::named_runner> runners;
  for (const std::string& target : targets()) {
    runners.push_back({target + ", threads " + std::to_string(threads),
                       [target, threads](const call& c, profile p) {
                         set_cpu_target(target);
                         run_cpu(c, p, threads);
                       }});
  }
  return runners;
}

bool is_slow_build() { return std::getenv("KVCTS_SANITIZED") != nullptr; }

void expect_equal(const std::vector<tests::test_call>& calls, int threads) {
  const std::vector<tests::named_runner> runners = candidates(threads);
  ASSERT_FALSE(runners.empty());
  for (const tests::test_call& c : calls) {
    for (const profile p : {profile::nvidia, profile::ieee}) {
      EXPECT_EQ(tests::difference(c, p, runners), "");
    }
  }
}

TEST(Cpu, Mxfp4QQuantEqualsReference) { expect_equal(tests::query_calls(), 1); }
TEST(Cpu, QuantizeAndInsertEqualsReference) { expect_equal(tests::insert_calls(), 1); }
TEST(Cpu, EveryBf16UnderEveryScale) {
  expect_equal(tests::exhaustive_calls(is_slow_build() ? 61 : 1), 2);
}

TEST(Cpu, AnyNumberOfThreads) {
  const std::vector<tests::test_call> calls = tests::large_calls();
  for (const int threads : {1, 2, 3, 16}) expect_equal(calls, threads);
}

// Rows of no bytes, whose other dimensions have a product past 64 bits: the sanitizer sees it.
TEST(Cpu, LayoutOfRowsOfNoBytesDoesNotOverflow) {
  std::byte none{};
  tensor_view x;
  x.type = dtype::u8;
  x.storage = &none;
  x.at.shape = {32, std::int64_t{1} << 40, std::int64_t{1} << 40, 0};
  x.at.strides = {0, 0, 0, 1};
  call c;
  c.kernel = "fused_layout";
  c.tensors["x"] = x;
  c.tensors["y"] = x;
  c.attributes["op"] = std::string("o");
  c.attributes["heads"] = std::int64_t{1};
  c.attributes["head_dim"] = std::int64_t{32};
  const fused_layout_arguments a = fused_layout_of(c);
  EXPECT_EQ(a.unit_bytes, 0);
  EXPECT_EQ(a.units, 0);
}

TEST(Cpu, KnowsItsKernels) {
  EXPECT_TRUE(cpu_supports("mxfp4_q_quant"));
  EXPECT_TRUE(cpu_supports("quantize_and_insert_k_cache"));
  EXPECT_FALSE(cpu_supports("no_such_kernel"));
  call c;
  c.kernel = "no_such_kernel";
  EXPECT_THROW(run_cpu(c, profile::nvidia, 1), input_error);
}

TEST(Cpu, TargetsAreChosenByName) {
  const std::vector<std::string> names = targets();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    set_cpu_target(name);
    EXPECT_EQ(cpu_target(), name);
  }
  EXPECT_THROW(set_cpu_target("sse9"), input_error);
}

TEST(Cuda, SaysWhyItIsNotThere) {
  const cuda_status status = cuda_available();
  if (status.available) {
    EXPECT_FALSE(status.device.empty());
  } else {
    EXPECT_FALSE(status.why_not.empty());
  }
}

}  // namespace
}  // namespace kvcts
