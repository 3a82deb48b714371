// Recorded GPU evidence: what verifies, what is stale, what is wrong.
#include "conformance/runner/evidence.h"

#include <filesystem>
#include <fstream>
#include <iostream>

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
    if (entry.path().extension() != ".json") continue;
    ++files;
    const evidence_check check = check_evidence(read_evidence(entry.path().string()), 0, file_of);
    std::cout << check.message << " [" << entry.path().filename().string() << "]\n";
    EXPECT_NE(check.state, evidence_state::wrong);
  }
  if (files == 0) std::cout << "GPU evidence: none is recorded\n";
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
