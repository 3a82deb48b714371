// Recorded GPU evidence: what verifies, what is stale, what is wrong.
#include "conformance/runner/evidence.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "conformance/runner/source_digest.h"
#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using testing_tools::scratch;

std::optional<std::string> no_file(const std::string&) { return std::nullopt; }
std::optional<std::string> file_of(const std::string& name) {
  for (const char* folder : {"/vectors/captured/", "/vectors/golden/"}) {
    const std::string path = std::string(KVCTS_SOURCE_DIR) + folder + name;
    if (fs::exists(path)) return path;
  }
  return std::nullopt;
}

// As `run --level smoke --evidence` records it, of the cpu candidate.
evidence smoke_evidence(const std::vector<std::string>& files = {}) {
  const auto subject = make_candidate("cpu", 1);
  run_options options;
  options.up_to = level::smoke;
  auto plan = plan_built_in(kernel_filter(""), level::smoke, options.seed, options.rules);
  for (const std::string& file : files) {
    for (planned_case& c : plan_file(file, kernel_filter("mxfp4_q_quant"))) {
      plan.push_back(std::move(c));
    }
  }
  return evidence_of(run_suite(plan, *subject, options), plan);
}

TEST(evidence, is_verified_where_digests_and_sources_agree) {
  const evidence_check check = check_evidence(smoke_evidence(), 2, no_file);
  EXPECT_EQ(check.state, evidence_state::verified) << check.message;
  EXPECT_GE(check.outputs, 94u);
  EXPECT_EQ(check.message.rfind("GPU evidence is verified: ", 0), 0u);
}

TEST(evidence, covers_vector_files) {
  const evidence e = smoke_evidence({KVCTS_SOURCE_DIR "/vectors/captured/triton_h200_a.h5"});
  EXPECT_EQ(check_evidence(e, 2, file_of).state, evidence_state::verified);
  // Without the file, its cases cannot be recomputed: not verified.
  EXPECT_EQ(check_evidence(e, 2, no_file).state, evidence_state::stale);
}

TEST(evidence, is_wrong_with_one_wrong_digest) {
  evidence e = smoke_evidence();
  std::string& digest = e.cases[7].outputs.begin()->second;
  digest[5] = digest[5] == '0' ? '1' : '0';
  const evidence_check check = check_evidence(e, 2, no_file);
  EXPECT_EQ(check.state, evidence_state::wrong);
  EXPECT_NE(check.message.find(e.cases[7].name), std::string::npos) << check.message;
  // Also where the sources have changed too.
  EXPECT_EQ(check_evidence(e, 2, no_file, "other sources").state, evidence_state::wrong);
}

TEST(evidence, is_wrong_without_an_output) {
  evidence e = smoke_evidence();
  e.cases[0].outputs.erase(e.cases[0].outputs.begin());
  EXPECT_EQ(check_evidence(e, 2, no_file).state, evidence_state::wrong);
}

TEST(evidence, is_stale_where_the_sources_have_changed) {
  const evidence_check check = check_evidence(smoke_evidence(), 2, no_file, "other sources");
  EXPECT_EQ(check.state, evidence_state::stale);
  EXPECT_EQ(check.message.rfind("GPU evidence is stale: the kernels' sources", 0), 0u)
      << check.message;
}

TEST(evidence, is_stale_where_cases_are_new_gone_or_changed) {
  evidence fewer = smoke_evidence();
  fewer.cases.pop_back();
  EXPECT_EQ(check_evidence(fewer, 2, no_file).state, evidence_state::stale);
  evidence renamed = smoke_evidence();
  renamed.cases[0].name = "gone";
  EXPECT_EQ(check_evidence(renamed, 2, no_file).state, evidence_state::stale);
  evidence other = smoke_evidence();
  other.cases[0].inputs[0] = other.cases[0].inputs[0] == '0' ? '1' : '0';
  EXPECT_EQ(check_evidence(other, 2, no_file).state, evidence_state::stale);
}

TEST(evidence, survives_its_file) {
  const scratch folder;
  const evidence e = smoke_evidence();
  write_evidence(folder.path("e.json"), e);
  const evidence back = read_evidence(folder.path("e.json"));
  EXPECT_EQ(back.sources, e.sources);
  EXPECT_EQ(back.cases.size(), e.cases.size());
  EXPECT_EQ(back.cases[3].outputs, e.cases[3].outputs);
  EXPECT_EQ(check_evidence(back, 2, no_file).state, evidence_state::verified);
  std::ofstream(folder.path("bad.json")) << "{\"schema\": 1}";
  EXPECT_THROW(read_evidence(folder.path("bad.json")), input_error);
  EXPECT_THROW(read_evidence(folder.path("none.json")), input_error);
  EXPECT_THROW(write_evidence(folder.path("no/such/folder.json"), e), input_error);
}

// Every recorded file of this repository. Stale passes with a visible line.
TEST(recorded_evidence, has_the_references_digests) {
  int files = 0;
  std::error_code none;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(KVCTS_SOURCE_DIR "/reports/evidence", none)) {
    if (!is_evidence_file(entry.path().string())) continue;
    ++files;
    const evidence_check check = check_evidence(read_evidence(entry.path().string()), 0, file_of);
    std::cout << check.message << " [" << entry.path().filename().string() << "]\n";
    EXPECT_NE(check.state, evidence_state::wrong);
  }
  if (files == 0) std::cout << "GPU evidence: none is recorded\n";
}

TEST(recorded_evidence, is_told_from_recorded_speeds) {
  EXPECT_TRUE(is_evidence_file("reports/evidence/h200-nvidia.json"));
  EXPECT_FALSE(is_evidence_file("reports/evidence/bench-h200.json"));
  EXPECT_FALSE(is_evidence_file("reports/evidence/mufu-h200.txt"));
}

// What is wrong with the JSON of `kvcts bench --candidate cuda`, or nothing.
std::string fault_of_bench(const nlohmann::json& bench) {
  const auto numbers = [](const nlohmann::json& row, std::initializer_list<const char*> fields) {
    return std::all_of(fields.begin(), fields.end(), [&](const char* field) {
      return row.contains(field) && row[field].is_number() && row[field] > 0;
    });
  };
  if (!bench.value("device", nlohmann::json()).is_string()) return "no device";
  if (!numbers(bench, {"copy_tb_s"})) return "no copy_tb_s";
  if (bench.value("rows", nlohmann::json()).empty()) return "no rows";
  if (bench.value("decode", nlohmann::json()).empty()) return "no decode";
  for (const nlohmann::json& row : bench["rows"]) {
    if (!row.contains("op") || !row.contains("size") ||
        !numbers(row, {"bytes", "time_us", "copy_us", "share_of_copy"}) ||
        !row.contains("target") || !row["target"].is_number() || row["target"] < 0) {  // 0: none
      return "row " + row.dump();
    }
    const double share = row["copy_us"].get<double>() / row["time_us"].get<double>();
    if (std::abs(share - row["share_of_copy"].get<double>()) > 1e-9) return "share " + row.dump();
  }
  for (const nlohmann::json& row : bench["decode"]) {
    if (!row.contains("op") || !numbers(row, {"tokens", "time_us", "empty_us", "ratio"})) {
      return "decode " + row.dump();
    }
  }
  return "";
}

TEST(recorded_bench, holds_what_a_reader_needs) {
  const auto parsed = [](const char* text) { return nlohmann::json::parse(text); };
  nlohmann::json bench = parsed(
      R"({"device": "d", "copy_tb_s": 4.0, "rows": [{"op": "o", "size": "T=1", "bytes": 2,
          "time_us": 4.0, "copy_us": 3.0, "share_of_copy": 0.75, "target": 0.8}],
          "decode": [{"op": "o", "tokens": 1, "time_us": 2.0, "empty_us": 1.0, "ratio": 2.0}]})");
  EXPECT_EQ(fault_of_bench(bench), "");
  EXPECT_EQ(fault_of_bench(parsed(R"({"copy_tb_s": 4.0})")), "no device");
  bench["rows"][0]["share_of_copy"] = 0.8;
  EXPECT_NE(fault_of_bench(bench), "");
  bench["rows"][0].erase("share_of_copy");
  EXPECT_NE(fault_of_bench(bench), "");
  std::error_code none;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(KVCTS_SOURCE_DIR "/reports/evidence", none)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("bench-", 0) != 0 || entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    EXPECT_EQ(fault_of_bench(nlohmann::json::parse(file)), "") << name;
  }
}

TEST(source_digest, ignores_comments_and_white_space) {
  EXPECT_EQ(without_comments("int a;  // one\n\n/* two\n */ int b;", false), "int a; int b;");
  EXPECT_EQ(without_comments("f(\"// no comment\", '/', 1'000);  // yes", false),
            "f(\"// no comment\", '/', 1'000);");
  EXPECT_EQ(without_comments("add(x \"#1\")  # why\n", true), "add(x \"#1\")");
  const scratch folder;
  const auto digest = [&](const char* text) {
    std::ofstream(folder.path("a.h")) << text;
    return digest_of_sources(folder.path(""), {"a.h"});
  };
  const std::string plain = digest("int a = 1;\n");
  EXPECT_EQ(digest("// why\nint a =  1;\n"), plain);
  EXPECT_NE(digest("int a = 2;\n"), plain);
  EXPECT_THROW(digest_of_sources(folder.path(""), {"none.h"}), input_error);
}

}  // namespace
}  // namespace kvcts
