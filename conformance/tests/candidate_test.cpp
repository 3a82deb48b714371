// Candidates from outside: each way to misbehave is told for its case, and the run goes on.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

std::string library(const std::string& name) { return KVCTS_TEST_CANDIDATES "/" + name + ".so"; }

struct reported {
  program_result program;
  json report;
};

reported run_library(const std::string& name, const std::string& options) {
  const scratch folder;
  reported made;
  made.program =
      run_program(fmt::format("run --candidate {} --report report {}", library(name), options),
                  folder.path(""));
  std::ifstream in(folder.path("report/report.json"));
  if (in) made.report = json::parse(in);
  return made;
}

constexpr const char* smoke = "--kernels fused_layout --level smoke";

struct misbehaviour {
  const char* library;
  int status;
  const char* outcome;
  const char* words;  // of one case's message or place
  bool all = true;    // six cases have that outcome; else one at least, and none of the six passes
};

void PrintTo(const misbehaviour& m, std::ostream* out) { *out << m.library; }

class misbehaving : public testing::TestWithParam<misbehaviour> {};

TEST_P(misbehaving, is_told_for_its_cases_and_the_run_goes_on) {
  const misbehaviour& expected = GetParam();
#if defined(__SANITIZE_ADDRESS__)
  if (std::string(expected.library) == "damages_heap") GTEST_SKIP() << "not glibc's allocator";
#endif
  const reported got = run_library(expected.library, std::string(smoke) + " --timeout 2");
  EXPECT_EQ(got.program.status, expected.status) << got.program.out << got.program.err;
  ASSERT_FALSE(got.report.is_null()) << got.program.err;
  int wrong = 0, of_outcome = 0;
  std::string words;
  for (const json& c : got.report["cases"]) {
    const std::string name = c["name"];
    if (name.rfind("o_chunk_h3", 0) != 0) {
      EXPECT_EQ(c["outcome"], "passed") << name << ": " << c;
      continue;
    }
    wrong += c["outcome"] != "passed";
    of_outcome += c["outcome"] == expected.outcome;
    words += c["message"].get<std::string>() + "\n";
    for (const json& place : c["places"]) words += place["place"].get<std::string>() + "\n";
  }
  EXPECT_EQ(wrong, 6);
  EXPECT_GE(of_outcome, expected.all ? 6 : 1);
  EXPECT_NE(words.find(expected.words), std::string::npos) << words;
}

// As docs/candidates.md tables them.
const misbehaviour misbehaviours[] = {
    {"crashes", 3, "crashed", "read of address 0x0, in no argument: killed by SIGSEGV"},
    {"writes_wild", 3, "crashed",
     "an address that no memory can have, or one not aligned as its instruction wants it"},
    {"overflows_stack", 3, "crashed", "the stack is used up"},
    {"aborts", 3, "crashed", "killed by SIGABRT (Aborted); it said: assertion failed: lanes == 32"},
    {"throws", 3, "crashed",
     "an exception came out of kvcts_candidate_run(): no kernel for this size"},
    {"exits", 3, "crashed", "ended its process: exit(7)"},
    {"closes_descriptors", 3, "crashed", "closed or used a file descriptor that is not its own"},
    {"damages_heap", 3, "crashed", "the heap is damaged after the call: killed by SIGABRT"},
    {"writes_far", 3, "crashed",
     "write 8192 bytes behind the end of argument y: killed by SIGSEGV"},
    {"writes_behind", 3, "failed", "guard byte 0 after the buffer", false},
    {"writes_before", 1, "failed", "1 bytes before the buffer (must not change)"},
    {"reads_behind", 3, "crashed", "read 16 bytes behind the end of argument x: killed by SIGSEGV"},
    {"writes_input", 3, "crashed", "write of byte 2 of argument x, an input: must not change"},
    {"leaks_descriptors", 1, "failed", "file descriptors leak: 1 more are open after each call"},
    {"errs", 1, "failed", "answers an error: no shared memory left"},
    {"answers_nonsense", 1, "failed", "answers 42, must be KVCTS_OK"},
    {"changes", 1, "failed", "row 0"},
    {"declines", 0, "unsupported", "no scales"},
};

INSTANTIATE_TEST_SUITE_P(libraries, misbehaving, testing::ValuesIn(misbehaviours),
                         [](const auto& one) { return std::string(one.param.library); });

TEST(misbehaving_table, of_the_documents_is_what_is_tested) {
  std::ifstream page(KVCTS_SOURCE_DIR "/docs/candidates.md");
  std::set<std::string> rows;
  std::string line;
  while (std::getline(page, line)) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    if (line.find("| 0 |") == std::string::npos && line.find("| 1 |") == std::string::npos &&
        line.find("| 3 |") == std::string::npos) {
      continue;  // of another table
    }
    for (const misbehaviour& m : misbehaviours) {
      if (name != m.library) continue;
      rows.insert(name);
      EXPECT_NE(line.find(fmt::format("| `{}` | ", m.outcome)), std::string::npos) << line;
      EXPECT_NE(line.find(m.words), std::string::npos) << line << " lacks: " << m.words;
      EXPECT_NE(line.find(fmt::format("| {} |", m.status)), std::string::npos) << line;
    }
  }
  for (const misbehaviour& m : misbehaviours) EXPECT_EQ(rows.count(m.library), 1u) << m.library;
}

// A slow test: once each, for one case.
TEST(misbehaving_one_case, endless_loops_time_out) {
  for (const char* name : {"loops", "prints_forever"}) {
    const reported got =
        run_library(name, std::string(smoke) + " --case 'o_chunk_h3_d64_g2_bf16' --timeout 0.5");
    EXPECT_EQ(got.program.status, 3) << got.program.out;
    ASSERT_EQ(got.report["cases"].size(), 1u);
    EXPECT_EQ(got.report["cases"][0]["outcome"], "timed_out");
    EXPECT_EQ(got.report["cases"][0]["message"].get<std::string>().rfind(
                  "no answer within 0.5 s (--timeout allows more)", 0),
              0u);
  }
}

TEST(misbehaving_one_case, the_side_that_touches_a_page_without_access_is_told) {
  // 3 * 2 * 2 rows of 2 bytes: not a multiple of 16, so a canary is hit; with 16 times the bytes
  // the end touches the page behind.
  const reported flush =
      run_library("writes_behind", std::string(smoke) + " --case o_chunk_h3_d64_g2_u8_x16");
  ASSERT_EQ(flush.report["cases"].size(), 1u);
  EXPECT_EQ(flush.report["cases"][0]["message"].get<std::string>().rfind(
                "write 0 bytes behind the end of argument y", 0),
            0u)
      << flush.report["cases"][0];
}

TEST(misbehaving_one_case, failures_are_shown_with_flags_and_crashes_first) {
  const std::string out = run_library("writes_behind", smoke).program.out;
  EXPECT_EQ(out.rfind("CRASHED fused_layout/", 0), 0u) << out;
  EXPECT_NE(out.find("\nFAILED fused_layout/"), std::string::npos) << out;
  EXPECT_NE(out.find("\n  flags: "), std::string::npos) << out;
  EXPECT_NE(out.find("in 3 of 24 cases, 3 more fail"), std::string::npos) << out;
}

TEST(misbehaving_one_case, state_of_earlier_cases_is_told_apart) {
  const reported got = run_library("remembers", smoke);
  EXPECT_EQ(got.program.status, 1);
  EXPECT_NE(got.program.out.find("alone in a fresh process it passes: an earlier case left damage "
                                 "or state behind"),
            std::string::npos)
      << got.program.out;
}

TEST(repeat, outputs_that_change_are_told) {
  const std::string one = std::string(smoke) + " --case o_chunk_h3_d64_g2_bf16 --repeat 4";
  const reported got = run_library("changes", one);
  EXPECT_EQ(got.program.status, 1);
  ASSERT_EQ(got.report["cases"].size(), 1u);
  EXPECT_EQ(got.report["cases"][0]["message"], "outputs change from run to run: y (run 2 of 4)");
  EXPECT_NE(got.report["cases"][0]["replay"].get<std::string>().find("--repeat 4"),
            std::string::npos);
  const reported steady = run_library("reference_cpu", one);
  EXPECT_EQ(steady.program.status, 0) << steady.program.out;
}

void expect_refused(const std::string& candidate, const std::string& words) {
  const scratch folder;
  const program_result got =
      run_program("run --report report --candidate " + candidate, folder.path(""));
  EXPECT_EQ(got.status, 2) << got.out << got.err;
  EXPECT_NE(got.err.find(words), std::string::npos) << got.err;
  EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
  EXPECT_TRUE(folder.empty());
}

TEST(libraries, that_are_no_candidates_are_refused) {
  expect_refused("./nowhere.so", "./nowhere.so: no such library");
  expect_refused("'" KVCTS_SOURCE_DIR "/README.md'", "README.md: cannot be loaded: ");
  expect_refused(library("no_run"), "exports no kvcts_candidate_run");
  expect_refused(library("other_abi"), "has ABI version 99, this KVCTS has 1");
  expect_refused(library("crashes_at_load"),
                 "loading it or kvcts_candidate_describe() fails: killed by SIGABRT");
  expect_refused(library("unknown_kernel"), "claims the unknown kernel 'fused_layuot'");
}

// --- Beside ours, in `bench`.

void expect_not_measured(const std::string& arguments, const std::string& words) {
  const scratch folder;
  const program_result got = run_program("bench --json rows.json " + arguments, folder.path(""));
  EXPECT_EQ(got.status, 2) << got.out << got.err;
  EXPECT_NE(got.err.find(words), std::string::npos) << got.err;
  EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
  EXPECT_TRUE(got.out.empty()) << got.out;
  EXPECT_TRUE(folder.empty());
}

TEST(bench_vs, refuses_what_cannot_stand_beside) {
  expect_not_measured("--vs ./nowhere.so", "./nowhere.so: no such library");
  expect_not_measured("--vs '" KVCTS_SOURCE_DIR "/README.md'", "README.md: cannot be loaded: ");
  expect_not_measured("--vs " + library("no_run"), "exports no kvcts_candidate_run");
  expect_not_measured("--vs " + library("other_abi"), "has ABI version 99, this KVCTS has 1");
  expect_not_measured("--vs " + library("crashes_at_load"), "killed by SIGABRT");
  expect_not_measured("--candidate cuda --vs " + library("measured"),
                      "takes host memory and cannot be measured beside candidate cuda: name "
                      "--candidate cpu");
  setenv("LD_LIBRARY_PATH", KVCTS_TEST_CANDIDATES "/stand_in", 1);
  expect_not_measured("--vs " + library("cuda_measured"),
                      "takes device memory and cannot be measured beside candidate cpu: name "
                      "--candidate cuda");
  unsetenv("LD_LIBRARY_PATH");
}

json measured_rows(const std::string& arguments, std::string& out) {
  const scratch folder;
  const program_result got =
      run_program("bench --threads 1 --json rows.json " + arguments, folder.path(""));
  EXPECT_EQ(got.status, 0) << got.err;
  out = got.out;
  std::ifstream in(folder.path("rows.json"));
  json rows = json::parse(in, nullptr, false);
  // A report takes the file, with a second candidate in it or without.
  const program_result read = run_program(
      "run --kernels mxfp4_q_quant --level smoke --report r --speed rows.json", folder.path(""));
  EXPECT_EQ(read.status, 0) << read.err;
  return rows;
}

TEST(bench_vs, measures_a_library_and_goes_on_where_it_does_not_work) {
  std::string out;
  const json bench = measured_rows(
      "--kernels 'fused_layout,compute_global*,combine*' --vs " + library("measured"), out);
  EXPECT_EQ(bench["candidate"], "cpu");
  EXPECT_EQ(bench["vs"], "misbehaving");
  EXPECT_EQ(bench["vs_version"], "1");
  EXPECT_EQ(bench["vs_library"], library("measured"));
  EXPECT_EQ(bench["vs_library_sha256"].get<std::string>().size(), 64u);
  ASSERT_EQ(bench["rows"].size(), 5u) << bench;
  std::map<std::string, json> rows;
  for (const json& row : bench["rows"]) rows[row["op"]] = row;

  for (const char* op : {"fused_layout q", "fused_layout o"}) {
    const json& row = rows[op];
    EXPECT_EQ(row["vs_state"], "measured") << row;
    const double us = row["vs_time_us"];
    const double ours = row["bytes"].get<double>() / row["cpu_gbs"].get<double>() / 1e3;
    const double copy = row["bytes"].get<double>() / row["memcpy_gbs"].get<double>() / 1e3;
    EXPECT_GT(us, 0);
    EXPECT_NEAR(row["vs_ratio"].get<double>(), us / ours, 1e-6 * us / ours) << row;
    EXPECT_NEAR(row["vs_share_of_copy"].get<double>(), copy / us, 1e-6 * copy / us) << row;
  }
  EXPECT_EQ(rows["fused_layout q"]["vs_same_bytes"], true);
  EXPECT_FALSE(rows["fused_layout q"].contains("vs_differing"));
  EXPECT_EQ(rows["fused_layout o"]["vs_same_bytes"], false);
  EXPECT_EQ(rows["fused_layout o"]["vs_differing"], json({"y"}));

  const json& failed = rows["fused_layout o_chunk"];
  EXPECT_EQ(failed["vs_state"], "error");
  EXPECT_EQ(failed["vs_message"], "no shared\\x0amemory left");
  EXPECT_FALSE(failed.contains("vs_time_us"));
  const json& declined = rows["compute_global_topk_indices_and_lens"];
  EXPECT_EQ(declined["vs_state"], "not claimed");
  EXPECT_EQ(declined["vs_message"], "no tables");
  EXPECT_EQ(rows["combine_topk_swa_indices"]["vs_state"], "not claimed");
  for (const json& row : bench["rows"]) EXPECT_GT(row["cpu_gbs"], 0) << row;

  for (const char* words :
       {"x same bytes\n", "x differs: y\n", "error: no shared\\x0amemory left\n",
        "not claimed: no tables\n", "not claimed\n", "misbehaving\n"}) {
    EXPECT_NE(out.find(words), std::string::npos) << "no '" << words << "' in\n" << out;
  }
}

TEST(bench_vs, tells_exceptions_strange_answers_and_writes_to_inputs) {
  std::string out;
  const json bench =
      measured_rows("--kernels fused_layout --vs " + library("measured_throws"), out);
  ASSERT_EQ(bench["rows"].size(), 3u) << bench;
  EXPECT_EQ(bench["rows"][0]["vs_differing"], json({"x"}));
  EXPECT_EQ(bench["rows"][1]["vs_message"],
            "an exception came out of kvcts_candidate_run(): no kernel for this size");
  EXPECT_EQ(bench["rows"][2]["vs_message"],
            "answers 42, must be KVCTS_OK, KVCTS_UNSUPPORTED or KVCTS_ERROR");
}

TEST(bench_vs, has_no_rows_where_none_is_named_or_the_profile_is_not_claimed) {
  std::string out;
  const json none = measured_rows("--kernels fused_layout --vs reference", out);
  EXPECT_FALSE(none.contains("vs"));
  EXPECT_FALSE(none["rows"][0].contains("vs_state"));
  EXPECT_GT(none["rows"][0]["reference_gbs"], 0);
  const json other = measured_rows("--kernels fused_layout --vs " + library("ieee_alone"), out);
  for (const json& row : other["rows"]) EXPECT_EQ(row["vs_state"], "not claimed") << row;
}

TEST(partial, is_never_a_full_pass) {
  const reported got = run_library("declines", smoke);
  EXPECT_EQ(got.program.status, 0);
  EXPECT_EQ(got.report["verdict"].get<std::string>().rfind(
                "conforms (6 cases of claimed kernels not claimed): 18 cases, ", 0),
            0u)
      << got.report["verdict"];
  EXPECT_EQ(run_library("declines", std::string(smoke) + " --require-full").program.status, 1);
  const reported two =
      run_library("declines", "--kernels 'fused_layout,mxfp4_q_quant' --level smoke");
  EXPECT_EQ(two.report["verdict"].get<std::string>().rfind(
                "conforms (1 of 2 claimed, 6 cases of claimed kernels not claimed): ", 0),
            0u)
      << two.report["verdict"];
  for (const char* words : {"kernels: 1 conform, 0 do not, 1 not claimed",
                            "  not claimed: mxfp4_q_quant\n", "0 differ, 2 of 17 kernels chosen"}) {
    EXPECT_NE(two.program.out.find(words), std::string::npos) << words << "\n" << two.program.out;
  }
  const reported none = run_library("claims_nothing", smoke);
  EXPECT_EQ(none.program.status, 1);
  EXPECT_EQ(none.report["verdict"],
            "does not conform: the candidate supports none of the 24 cases");
}

TEST(partial, profiles_and_flags_are_declared) {
  const reported got = run_library("declares", smoke);
  EXPECT_EQ(got.program.status, 0) << got.program.out;
  int declined = 0;
  for (const json& c : got.report["cases"]) declined += c["outcome"] == "unsupported";
  EXPECT_EQ(declined, 3);  // EmptyRows
  EXPECT_EQ(
      got.report["verdict"].get<std::string>().rfind(
          "conforms (3 cases of claimed kernels not claimed: cases of the flag EmptyRows): ", 0),
      0u)
      << got.report["verdict"];
  const reported other = run_library("declares", std::string(smoke) + " --profile ieee");
  EXPECT_EQ(other.program.status, 1);
  EXPECT_EQ(other.report["totals"]["unsupported"], 24);
}

TEST(partial, verdict_names_the_profiles_that_are_not_claimed) {
  run_result result;
  result.kernels_claimed = result.kernels_total = 1;
  result.cases.resize(5);
  for (case_result& c : result.cases) c.kernel = "fused_layout";
  const auto verdict = [&](const std::vector<std::string>& reasons) {
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      result.cases[i].what = outcome::unsupported;
      result.cases[i].message = reasons[i];
    }
    const std::string text = verdict_of(result);
    return text.substr(0, text.find(')') + 1);
  };
  EXPECT_EQ(
      verdict({"mine does not claim the profile ieee", "mine does not claim the profile ieee"}),
      "conforms (2 cases of claimed kernels not claimed: the profile ieee)");
  EXPECT_EQ(
      verdict({"m does not claim the profile ieee", "m does not claim cases of the flag A",
               "m does not claim cases of the flag B", "m does not claim cases of the flag C"}),
      "conforms (4 cases of claimed kernels not claimed: cases of the flag A, cases of the "
      "flag B, cases of the flag C, ...)");
}

TEST(conforming, every_kernel_passes_through_the_interface) {
  const reported got = run_library("reference_cpu", "--level smoke");
  EXPECT_EQ(got.program.status, 0) << got.program.out;
  EXPECT_EQ(got.report["kernels"]["claimed"], got.report["kernels"]["total"]);
  EXPECT_EQ(got.report["totals"]["passed"], got.report["totals"]["cases"]);
  EXPECT_EQ(got.report["candidate"]["name"], "reference library");
  EXPECT_EQ(got.report["environment"]["candidate vendor"], "KVCTS");
  EXPECT_EQ(got.report["environment"]["candidate library sha256"].get<std::string>().size(), 64u);
}

// Caches past 2 and 4 GiB are shared as they are.
TEST(conforming, caches_past_2_gib_pass_through_the_interface) {
  const reported got =
      run_library("reference_cpu",
                  "--kernels quantize_and_insert_k_cache,mxfp4_k_norm_quant_insert "
                  "--level exhaustive --case 'past*'");
  EXPECT_EQ(got.program.status, 0) << got.program.out << got.program.err;
  EXPECT_GE(got.report["cases"].size(), 1u);
}

TEST(init_candidate, makes_a_project_that_builds_and_conforms) {
  for (const char* language : {"c", "c++"}) {
    const scratch folder;
    const program_result made =
        run_program(fmt::format("init-candidate mine --language {}", language), folder.path(""));
    ASSERT_EQ(made.status, 0) << made.err;
    const std::string build =
        fmt::format("cd '{}' && ('{}' -S mine -B mine/build && '{}' --build mine/build) >log 2>&1",
                    folder.path(""), KVCTS_CMAKE, KVCTS_CMAKE);
    ASSERT_EQ(std::system(build.c_str()), 0) << build;
    const program_result ran =
        run_program("run --candidate mine/build/libcandidate.so --level smoke", folder.path(""));
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("verdict: conforms (1 of 17 claimed): 24 cases"), std::string::npos)
        << ran.out;
    const program_result again = run_program("init-candidate mine", folder.path(""));
    EXPECT_EQ(again.status, 2);
    EXPECT_NE(again.err.find("mine is there and not an empty folder"), std::string::npos);
  }
}

TEST(init_candidate, refuses_an_unknown_language) {
  const scratch folder;
  const program_result got = run_program("init-candidate mine --language basic", folder.path(""));
  EXPECT_EQ(got.status, 2);
  EXPECT_NE(got.err.find("unknown language 'basic': the languages are c, c++"), std::string::npos);
  EXPECT_TRUE(folder.empty());
}

// Plays a library that hangs, without the waiting.
class hanging : public candidate {
 public:
  std::string name() const override { return "hanging"; }
  std::string version() const override { return "1"; }
  bool supports(std::string_view) const override { return true; }
  void run(const call&, profile) override {
    ++calls;
    throw call_failure(outcome::timed_out, "no answer");
  }
  bool renew() override {
    ++renewals;
    return true;
  }
  int calls = 0, renewals = 0;
};

TEST(timeouts, a_kernel_is_not_waited_for_for_ever) {
  hanging subject;
  run_options options;
  options.up_to = level::smoke;
  const run_result result =
      run_suite(plan_built_in(kernel_filter("fused_layout"), level::smoke, 1, profile::nvidia),
                subject, options);
  EXPECT_EQ(subject.calls, 9);  // the first case again alone, then seven more
  EXPECT_EQ(subject.renewals, 9);
  ASSERT_EQ(result.cases.size(), 24u);
  for (const case_result& c : result.cases) EXPECT_EQ(c.what, outcome::timed_out);
  EXPECT_EQ(result.cases[7].message, "no answer");
  EXPECT_EQ(result.cases[8].message, "not run, since 8 cases of this kernel timed out before it");
  EXPECT_EQ(result.exit_status(false), 3);
}

TEST(describe_abi, names_every_argument) {
  const program_result got = run_program("describe fused_layout --abi");
  EXPECT_EQ(got.status, 0);
  for (const char* words : {"\"x\"  KVCTS_INPUT", "\"y\"  KVCTS_OUTPUT", "\"op\"  KVCTS_TEXT",
                            "q, o, o_chunk", "\"heads\"  KVCTS_INTEGER", "KVCTS_F8E4M3FNUZ"}) {
    EXPECT_NE(got.out.find(words), std::string::npos) << words << "\n" << got.out;
  }
}

TEST(worker, does_nothing_when_it_is_run_by_hand) {
  EXPECT_EQ(WEXITSTATUS(std::system("'" KVCTS_WORKER_PROGRAM "' x 2>/dev/null")), 2);
}

// What is saved fails again by the command that is printed.
TEST(fuzz_command, shrinks_saves_and_replays) {
  struct expectation {
    const char* library;
    int status;
    const char* words;
  };
  for (const expectation& e : {expectation{"writes_behind", 1, "guard byte 0 after the buffer"},
                               expectation{"crashes", 3, "the candidate crashed"}}) {
    const scratch folder;
    const std::string command =
        fmt::format("fuzz --candidate {} --seed 3 --cases 40 --profile nvidia", library(e.library));
    const program_result got = run_program(command, folder.path(""));
    EXPECT_EQ(got.status, e.status) << got.out << got.err;
    EXPECT_NE(got.out.find(e.words), std::string::npos) << got.out;
    const std::size_t at = got.out.find("again alone: kvcts ");
    ASSERT_NE(at, std::string::npos) << got.out;
    const std::size_t from = at + std::string_view("again alone: kvcts ").size();
    const std::string replay = got.out.substr(from, got.out.find('\n', at) - from);
    const program_result again = run_program(replay, folder.path(""));
    EXPECT_EQ(again.status, e.status) << replay << again.out << again.err;
  }
}

TEST(fuzz_command, draws_the_same_cases_again) {
  const scratch folder;
  const auto digest_of_run = [&](const std::string& options) {
    const program_result got = run_program("fuzz --cases 34 " + options, folder.path(""));
    EXPECT_EQ(got.status, 0) << got.out << got.err;
    const std::size_t at = got.out.find("digest ");
    return at == std::string::npos ? got.out : got.out.substr(at, 7 + 64);
  };
  EXPECT_EQ(digest_of_run("--seed 9"), digest_of_run("--seed 9 --candidate reference"));
  EXPECT_NE(digest_of_run("--seed 9"), digest_of_run("--seed 8"));
  EXPECT_TRUE(folder.empty());
  EXPECT_EQ(run_program("fuzz --kernels no_such_kernel", folder.path("")).status, 2);
}

std::string file_without_times(const std::string& path) {
  std::ifstream in(path);
  nlohmann::json j = nlohmann::json::parse(in);
  for (nlohmann::json& row : j["rows"]) row["seconds"] = 0;
  return j.dump(1);
}

// Of a candidate that holds and of one that fails: the shards' results are the whole run's.
TEST(fuzz_command, results_of_shards_are_merged) {
  struct expectation {
    std::string options;
    int status;
    const char* words;
  };
  for (const expectation& e :
       {expectation{"--kernels 'mxfp4_q_quant,fused_layout,c*' --cases 50", 0,
                    "fuzz of 3 shards: 50 cases"},
        expectation{"--candidate " + library("writes_behind") + " --cases 60", 1,
                    "1 of 2 kernels in a profile fail"}}) {
    const scratch folder;
    const auto run = [&](const std::string& more) {
      return run_program("fuzz " + e.options + " " + more, folder.path(""));
    };
    EXPECT_EQ(run("--seed 3 --json whole.json").status, e.status);
    for (const char* i : {"1", "2", "3"}) {
      run(fmt::format("--seed 3 --shard {}/3 --json {}.json", i, i));  // not each finds the failure
    }
    const program_result merged =
        run_program("report merge 3.json 1.json 2.json -o m", folder.path(""));
    EXPECT_EQ(merged.status, e.status) << merged.err;
    EXPECT_NE(merged.out.find(e.words), std::string::npos) << merged.out;
    EXPECT_EQ(file_without_times(folder.path("m/fuzz.json")),
              file_without_times(folder.path("whole.json")));
    for (const auto& [files, words] :
         std::map<std::string, std::string>{{"1.json 3.json", "missing shards: 2/3"},
                                            {"1.json 1.json 2.json", "shard 1/3 is there twice"},
                                            {"whole.json 1.json", "whole run"},
                                            {"1.json none.json", "no result of kvcts fuzz"}}) {
      const program_result r = run_program("report merge " + files + " -o n", folder.path(""));
      EXPECT_EQ(r.status, 2) << files;
      EXPECT_NE(r.err.find(words), std::string::npos) << files << ": " << r.err;
      EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    }
    run("--shard 2/3 --seed 5 --json other.json");
    const program_result other =
        run_program("report merge 1.json other.json 3.json -o n", folder.path(""));
    EXPECT_EQ(other.status, 2);
    EXPECT_NE(other.err.find("differ in 'seed'"), std::string::npos) << other.err;
    const program_result bad = run("--json /nowhere/f.json");
    EXPECT_EQ(bad.status, 2);
    EXPECT_NE(bad.err.find("/nowhere/f.json: cannot be written"), std::string::npos) << bad.err;
  }
}

}  // namespace
}  // namespace kvcts
