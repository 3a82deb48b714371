// The problems that the benches measure: legal calls, and bytes that are what the tensors hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "optimized/bench/problems.h"
#include "reference/contract/contract.h"
#include "reference/kernels/kernels.h"

namespace kvcts {
namespace {

bool is_written(const bench_problem& p, std::string_view argument) {
  return contract_of(p.work.kernel).argument(argument)->direction != role::input;
}

// What the reference writes over this canary, tensor after tensor.
std::vector<std::byte> written_over(const bench_problem& p, std::byte canary) {
  for (const auto& [name, v] : p.work.tensors) {
    if (is_written(p, name)) std::fill(v.storage, v.storage + v.storage_bytes, canary);
  }
  reference_of(p.work.kernel)(p.work, rules_for(profile::nvidia));
  std::vector<std::byte> all;
  for (const auto& [name, v] : p.work.tensors) {
    if (is_written(p, name)) all.insert(all.end(), v.storage, v.storage + v.storage_bytes);
  }
  return all;
}

// Bytes that come out the same over two canaries are those that the kernel writes.
std::int64_t bytes_written(const bench_op& op, std::int64_t tokens) {
  const std::vector<std::byte> a = written_over(op.make(op, tokens), std::byte{0xCC});
  const std::vector<std::byte> b = written_over(op.make(op, tokens), std::byte{0x33});
  std::int64_t same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
  return same;
}

// Inputs whole, but for the places of a last page that hold no token.
std::int64_t bytes_read(const bench_problem& p, std::int64_t tokens) {
  std::int64_t bytes = 0;
  for (const auto& [name, v] : p.work.tensors) {
    if (is_written(p, name)) continue;
    bytes += count(v.at.shape) * static_cast<std::int64_t>(size_of(v.type));
    if (name == "k_cache") bytes -= (v.dim(0) * v.dim(1) - tokens) * v.dim(2);
  }
  return bytes;
}

TEST(Bench, EveryKernelHasProblems) {
  std::set<std::string> kernels, names;
  int without_target = 0;
  for (const bench_op& op : bench_ops()) {
    kernels.insert(op.kernel);
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(op.name.rfind(op.kernel, 0), 0u) << op.name;
    EXPECT_FALSE(op.tokens.empty()) << op.name;
    EXPECT_GT(op.cpu_tokens, 0) << op.name;
    without_target += op.copy_target == 0 ? 1 : 0;
  }
  for (const kernel_contract* contract : contracts()) {
    EXPECT_EQ(kernels.count(std::string(contract->name)), 1u) << contract->name;
  }
  EXPECT_EQ(kernels.size(), contracts().size());
  EXPECT_EQ(without_target, 1);  // tiles at random slots
}

TEST(Bench, ProblemsAreLegal) {
  for (const bench_op& op : bench_ops()) {
    for (const std::int64_t tokens : {1, 8, 64, 130, 4230}) {  // 4230: of two requests
      if (tokens > 130 && op.make(op, 1).bytes > 20000) continue;
      const bench_problem p = op.make(op, tokens);
      EXPECT_NO_THROW(check(contract_of(op.kernel), p.work, true)) << op.name << " " << tokens;
      for (const std::string& output : p.outputs) {
        EXPECT_TRUE(is_written(p, output)) << op.name << " " << output;
      }
    }
  }
}

TEST(Bench, BytesAreThoseReadAndWritten) {
  for (const bench_op& op : bench_ops()) {
    const std::int64_t tokens = 130;
    const bench_problem p = op.make(op, tokens);
    EXPECT_EQ(p.bytes, bytes_read(p, tokens) + bytes_written(op, tokens)) << op.name;
  }
}

TEST(Bench, SlotsByPageAreEachOnce) {
  for (const bench_op& op : bench_ops()) {
    if (op.name != "indexer_k_norm_rope_store fp8 tiled") continue;
    const bench_problem p = op.make(op, 200);  // three pages, and eight slots of a fourth
    const tensor_view& v = p.work.tensors.at("kv_slot_mapping");
    std::set<std::int64_t> slots;
    bool in_order = true;
    for (std::int64_t i = 0; i < 200; ++i) {
      const auto slot = load<std::int64_t>(v.storage + 8 * i);
      slots.insert(slot);
      in_order = in_order && slot == i;
      EXPECT_EQ(slot % 64, i % 64);
    }
    EXPECT_EQ(slots.size(), 200u);
    EXPECT_EQ(*slots.rbegin(), 199);
    EXPECT_FALSE(in_order);
    return;
  }
  FAIL() << "the tiled form is gone";
}

TEST(Bench, FloatsAreOrdinary) {
  for (const bench_op& op : bench_ops()) {
    const bench_problem p = op.make(op, 130);
    for (const auto& [name, v] : p.work.tensors) {
      if (is_written(p, name) || (v.type != dtype::bf16 && v.type != dtype::f32)) continue;
      const auto size = static_cast<std::int64_t>(size_of(v.type));
      std::int64_t strange = 0;
      for (std::int64_t i = 0; i < count(v.at.shape); ++i) {
        const std::uint32_t exponent = load<std::uint16_t>(v.storage + i * size + size - 2) >> 7;
        strange += (exponent & 0xFF) < 119 || (exponent & 0xFF) > 129 ? 1 : 0;
      }
      EXPECT_EQ(strange, 0) << op.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace kvcts
