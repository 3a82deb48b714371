#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "vectors/reduction_trees.h"
#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

const std::string captured = std::string(KVCTS_SOURCE_DIR) + "/vectors/captured/";

// Every dataset of every kernel, those without a contract yet too.
TEST(captured, kernels_are_read_completely) {
  const vector_file file(captured + "triton_h200_a.h5");
  EXPECT_EQ(file.info().producer, "Triton 3.6.0 kernels on NVIDIA H200 (sm_90), driver 580.159");
  EXPECT_EQ(file.info().profile, "nvidia");
  EXPECT_EQ(file.info().seed, 101u);
  std::map<std::string, int> cases;
  std::size_t datasets = 0;
  std::size_t bytes = 0;
  for (const vector_file::entry& which : file.cases()) {
    ++cases[which.kernel];
    const test_case c = file.decode(which);
    EXPECT_FALSE(c.expected.empty());
    for (const std::vector<buffer>* group : {&c.inputs, &c.expected}) {
      for (const buffer& b : *group) {
        ++datasets;
        bytes += b.bytes.size();
        EXPECT_LE(static_cast<std::size_t>(reach(b.at)) * size_of(b.type), b.bytes.size());
      }
    }
  }
  EXPECT_EQ(file.cases().size(), 189u);
  EXPECT_EQ(cases["mxfp4_q_quant"], 6);
  EXPECT_EQ(cases["quantize_and_insert_k_cache"], 12);
  EXPECT_EQ(cases["rope_quant_insert"], 26);
  EXPECT_EQ(datasets, 1533u);
  EXPECT_EQ(bytes, 51192904u);
}

// Of every kernel that has a contract.
TEST(captured, cases_fit_their_contracts) {
  const vector_file file(captured + "triton_h200_a.h5");
  std::map<std::string, int> cases;
  for (const vector_file::entry& which : file.cases()) {
    const auto has_name = [&](const kernel_contract* c) { return c->name == which.kernel; };
    if (std::none_of(contracts().begin(), contracts().end(), has_name)) continue;
    try {
      file.read(which);
      ++cases[which.kernel];
    } catch (const input_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_EQ(cases["mxfp4_q_quant"], 6);
  EXPECT_EQ(cases["quantize_and_insert_k_cache"], 12);
}

TEST(captured, strided_case_as_python_sees_it) {
  const vector_file file(captured + "triton_h200_a.h5");
  const test_case c = file.read({"mxfp4_q_quant", "t33_h20_p32_nonfinite_strided"});
  EXPECT_EQ(c.flags, (std::vector<std::string>{"NonFinite", "PaddedHeads", "Strided"}));
  EXPECT_EQ(std::get<double>(c.attributes.at("weight_scale")), 0.01976423537605237);
  const buffer* q = c.input("index_q");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->at, (extent{{33, 20, 128}, {2880, 144, 1}, 32}));
  EXPECT_EQ(q->bytes.size(), 2 * 95079u);
  EXPECT_EQ(sha256(q->bytes.data(), q->bytes.size()),
            "b4ac9470dc9bd9543df26adbc88466d385a4094564f2d054968de31203b849dd");
}

TEST(captured, reduction_trees_are_read_completely) {
  const reduction_tree_file file(captured + "reduction_trees_h200.h5");
  EXPECT_EQ(file.producer(), "Triton 3.6.0 on NVIDIA H200 (sm_90)");
  ASSERT_EQ(file.groups().size(), 18u);
  EXPECT_EQ(file.groups().front(), "d32_w1");
  EXPECT_EQ(file.groups().back(), "d1024_w4");
  for (const std::string& name : file.groups()) {
    const reduction_tree_group rows = file.read(name);
    std::string wanted = "d";
    wanted.append(std::to_string(rows.dim)).append("_w").append(std::to_string(rows.num_warps));
    EXPECT_EQ(name, wanted);
    EXPECT_EQ(rows.rows(), 256);
    EXPECT_EQ(rows.eps, 1e-6);
    EXPECT_EQ(rows.x.type, dtype::bf16);
    EXPECT_EQ(rows.y.has_value(), rows.dim <= 256);
  }
  const buffer sum = file.read("d256_w4").sum;
  EXPECT_EQ(sha256(sum.bytes.data(), sum.bytes.size()),
            "88e99e86eb839fa34457477b6a26dfc5828a2f373fc4e4d03532965890e47b3c");
}

}  // namespace
}  // namespace kvcts::testing_tools
