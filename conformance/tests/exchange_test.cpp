// verify and compare: what they say of copies that other implementations filled in.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "conformance/faults/faults.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "vectors/file.h"
#include "vectors/tests/hdf5_edit.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using testing_tools::case_named;
using testing_tools::editor;
using testing_tools::input_of;
using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

// An insert and a query, `actual` filled in with what is expected.
suite filled_suite() {
  suite s;
  s.info.producer = "engine";
  for (const auto& [kernel, name] :
       {std::pair("mxfp4_q_quant", "t2_h3_p4_ties"),
        std::pair("quantize_and_insert_k_cache",
                  "n14_s11_b3_r584_mixed_gap1168_rows8_guard_warm_neg")}) {
    s.cases.push_back(case_named(kernel, name));
    s.cases.back().actual = s.cases.back().expected;
  }
  return s;
}

// Byte of the live slot `live`'s first scale in a cache of records of 584 bytes.
std::size_t first_scale_of_a_live_slot(test_case& c) {
  const buffer& slots = *c.input("slot_mapping");
  const buffer& cache = *c.input("k_cache");
  const std::int64_t block_size = std::get<std::int64_t>(c.attributes.at("block_size"));
  for (std::int64_t t = 0;; ++t) {
    const auto slot = load<std::int64_t>(slots.view().element(t));
    if (slot < 0) continue;
    return static_cast<std::size_t>(cache.at.offset + slot / block_size * cache.at.strides[0] +
                                    block_size * 576 + slot % block_size * 8);
  }
}

class compare_files : public ::testing::Test {
 protected:
  program_result compare(const suite& a, const suite& b, const std::string& options = "") {
    write_vectors(folder_.path("a.h5"), a);
    write_vectors(folder_.path("b.h5"), b);
    return run_program("compare a.h5 b.h5" + options, folder_.path(""));
  }
  void expect_refused(const suite& a, const suite& b, const std::string& words) {
    const program_result r = compare(a, b, " --report r");
    EXPECT_EQ(r.status, 2) << r.out;
    EXPECT_NE(r.err.find("a.h5 and b.h5 hold different suites: " + words), std::string::npos)
        << r.err;
    EXPECT_TRUE(r.out.empty()) << r.out;
    EXPECT_FALSE(fs::exists(folder_.path("r")));
  }
  scratch folder_;
};

TEST_F(compare_files, equal_outputs_are_equal_whatever_is_expected) {
  suite a = filled_suite();
  for (test_case& c : a.cases) {
    c.actual[0].bytes[0] ^= std::byte{0xFF};
    c.expected[0].bytes[1] ^= std::byte{0xFF};
  }
  const program_result r = compare(a, a);
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("verdict: equal: 2 cases, "), std::string::npos) << r.out;
  EXPECT_TRUE(r.err.empty()) << r.err;
}

TEST_F(compare_files, tells_token_slot_page_and_block) {
  const suite a = filled_suite();
  suite b = a;
  b.cases[1].actual[0].bytes[first_scale_of_a_live_slot(b.cases[1])] ^= std::byte{1};
  const program_result r = compare(a, b, " --report r");
  EXPECT_EQ(r.status, 1) << r.err;
  EXPECT_NE(r.out.find("FAILED quantize_and_insert_k_cache/"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("  k_cache: token "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find(", scale of block 0 (dims 0..63): A 0x"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find(", B 0x"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("verdict: different: 1 of 2 cases differ (1 of "), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_.path("r/report.json")));
}

TEST_F(compare_files, a_suite_speaks_by_what_it_expects) {
  suite a = filled_suite(), b = a;
  for (test_case& c : b.cases) c.actual.clear();
  EXPECT_EQ(compare(a, b).status, 0);
  a.cases[0].actual[0].bytes[0] ^= std::byte{1};
  const program_result r = compare(a, b);
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("A: actual of a.h5; B: expected of b.h5"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("again: kvcts compare 'a.h5' 'b.h5'"), std::string::npos) << r.out;
}

TEST_F(compare_files, a_missing_output_differs) {
  const suite a = filled_suite();
  suite b = a;
  b.cases[0].actual.pop_back();
  const program_result r = compare(a, b);
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("b.h5: actual/weights is missing"), std::string::npos) << r.out;
  b = a;
  b.cases[1].actual.clear();  // of the whole case
  EXPECT_EQ(compare(a, b).status, 1);
  EXPECT_EQ(compare(b, a).status, 1);
  b = a;
  b.cases[0].actual[0].at = dense({4, 2, 64});
  const program_result shape = compare(a, b);
  EXPECT_EQ(shape.status, 1);
  EXPECT_NE(shape.out.find("q_packed has shape ["), std::string::npos) << shape.out;
}

TEST_F(compare_files, refuses_different_suites) {
  const suite a = filled_suite();
  suite b = a;
  input_of(b.cases[0], "index_q").bytes[5] ^= std::byte{1};
  expect_refused(a, b, "mxfp4_q_quant/t2_h3_p4_ties: input index_q differs from byte 5 on");
  b = a;
  b.cases[0].attributes["weight_scale"] = 0.125;
  expect_refused(a, b, "mxfp4_q_quant/t2_h3_p4_ties: attribute weight_scale differs");
  b = a;
  b.cases.pop_back();
  expect_refused(a, b, "quantize_and_insert_k_cache/" + a.cases[1].name + ": is only in a.h5");
  b = a;
  b.cases[0].name = "another";
  expect_refused(a, b, "mxfp4_q_quant/t2_h3_p4_ties: is only in a.h5");
}

TEST(verify, writes_a_report) {
  const scratch folder;
  suite s = filled_suite();
  write_vectors(folder.path("suite.h5"), s);
  s.cases[0].actual[0].bytes[0] ^= std::byte{1};
  write_vectors(folder.path("mine.h5"), s);
  const program_result r = run_program("verify suite.h5 mine.h5 --report r", folder.path(""));
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(r.err.empty()) << r.err;  // no progress in a pipe
  EXPECT_TRUE(fs::exists(folder.path("r/report.json")));
  EXPECT_TRUE(fs::exists(folder.path("r/junit.xml")));
}

// A case in which a fault shows, `actual` as the fault has it.
test_case played(const std::string& kernel, const std::string& name, const char* fault) {
  test_case c = case_named(kernel, name);
  c.actual = expected_results(contract_of(kernel), c.attributes, c.inputs, canary,
                              rules_with(*find_fault(fault), profile::nvidia), c.expected);
  return c;
}

TEST(verify, names_the_fault_of_the_smallest_failing_case) {
  const scratch folder;
  suite s;
  // Outputs in another order than their names'.
  s.cases.push_back(played("fused_q_kv_rmsnorm_quant",
                           "t3_q96_kv33_hardsquares_ordinary_qf32_kvf32", "swizzle_missing"));
  s.cases.push_back(played("mxfp4_q_quant", "t2_h3_p4_ties", "e2m1_ties_away"));
  s.cases.push_back(played("mxfp4_q_quant", "t16_h8_p12_ordinary_ws3", "e2m1_ties_away"));
  write_vectors(folder.path("suite.h5"), s);
  const program_result r = run_program("verify suite.h5 suite.h5 --report r", folder.path(""));
  EXPECT_EQ(r.status, 1) << r.err;
  for (const char* line :
       {"diagnosis of fused_q_kv_rmsnorm_quant (t3_q96_kv33_hardsquares_ordinary_qf32_kvf32): "
        "swizzle_missing explains all ",
        "diagnosis of mxfp4_q_quant (t2_h3_p4_ties): e2m1_ties_away explains all "}) {
    EXPECT_NE(r.out.find(line), std::string::npos) << line << "\n" << r.out;
  }
  std::ifstream report(folder.path("r/report.json"));
  const std::string text(std::istreambuf_iterator<char>(report), {});
  EXPECT_NE(text.find("\"swizzle_missing\""), std::string::npos);
}

// Storage behind an output belongs to somebody else, in a file too.
TEST(files, may_hold_more_than_the_output) {
  const scratch folder;
  suite s;
  s.cases.push_back(played("mxfp4_q_quant", "t2_h3_p4_ties", "e2m1_ties_away"));
  for (auto* buffers : {&s.cases[0].expected, &s.cases[0].actual}) {
    (*buffers)[0].bytes.resize((*buffers)[0].bytes.size() + 48, canary);
  }
  write_vectors(folder.path("suite.h5"), s);
  const program_result check = run_program("vectors check suite.h5", folder.path(""));
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  const program_result run = run_program("run --vectors suite.h5", folder.path(""));
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  const program_result verify = run_program("verify suite.h5 suite.h5", folder.path(""));
  EXPECT_EQ(verify.status, 1);
  EXPECT_NE(verify.out.find("e2m1_ties_away explains all "), std::string::npos) << verify.out;
}

// A cache of 40 MiB as input, expected and actual, of which the last page is wrong in its last byte
// and in a value of the piece before.
class large_case : public ::testing::Test {
 protected:
  void SetUp() override {
    suite s;
    s.cases.push_back(case_named("quantize_and_insert_k_cache",
                                 "n14_s11_b3_r584_mixed_gap1168_rows8_guard_warm_neg"));
    test_case& c = s.cases[0];
    buffer& cache = input_of(c, "k_cache");
    cache.bytes.resize(std::size_t{40} << 20);
    c.expected[0].bytes.resize(cache.bytes.size());
    write_vectors(folder_.path("suite.h5"), s);
    c.actual = c.expected;
    write_vectors(folder_.path("right.h5"), s);
    c.actual[0].bytes.back() ^= std::byte{1};
    c.actual[0].bytes[std::size_t{20} << 20] ^= std::byte{1};
    write_vectors(folder_.path("wrong.h5"), s);
  }
  scratch folder_;
};

TEST_F(large_case, needs_little_memory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer takes terabytes of addresses";
#endif
  // All that the program maps, its libraries too. The three buffers alone are 120 MiB.
  const auto with_limit = [&](const std::string& arguments) {
    const std::string command = "cd '" + folder_.path("") +
                                "' && ulimit -v 110000 && '" KVCTS_PROGRAM "' " + arguments +
                                " >out 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const auto said = [&] {
    std::ifstream in(folder_.path("out"));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(with_limit("verify suite.h5 right.h5"), 0) << said();
  EXPECT_EQ(with_limit("verify suite.h5 wrong.h5"), 1) << said();
  const std::string text = said();
  EXPECT_NE(text.find("2 bytes differ"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string((40 << 20) - 1)), std::string::npos) << text;
  EXPECT_NE(
      text.find("no diagnosis of quantize_and_insert_k_cache: its smallest failing case has "),
      std::string::npos)
      << text;
  EXPECT_EQ(with_limit("compare right.h5 wrong.h5"), 1) << said();
  EXPECT_NE(said().find("verdict: different: 1 of 1 cases differ (2 of "), std::string::npos);
  // What reads whole cases cannot: the limit is a limit.
  EXPECT_EQ(with_limit("vectors check suite.h5"), 2) << said();
}

TEST_F(large_case, an_interruption_leaves_nothing_and_ends_by_the_signal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::signal(signal, SIG_DFL);  // a background shell may have it ignored
      if (chdir(folder_.path("").c_str()) != 0) _exit(99);
      // The probe gives the time: it decodes 200 MiB.
      std::freopen("/dev/null", "w", stderr);
      std::freopen("/dev/null", "w", stdout);
      execl(KVCTS_PROGRAM, KVCTS_PROGRAM, "verify", "suite.h5", "wrong.h5", "--report", "r",
            nullptr);
      _exit(98);
    }
    // From when the folder of the report is there.
    for (int i = 0; i < 2000 && !fs::exists(folder_.path("r")); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, signal);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_FALSE(fs::exists(folder_.path("r")));
  }
}

}  // namespace
}  // namespace kvcts
