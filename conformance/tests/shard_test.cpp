// Shards, merged reports, checkpoints: nothing lost, nothing counted twice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <regex>
#include <thread>

#include "conformance/faults/faults.h"
#include "conformance/runner/costs.h"
#include "conformance/runner/merge.h"
#include "conformance/tests/tools.h"
#include "reports/checkpoint.h"
#include "reports/reports.h"

namespace kvcts {
namespace {

using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

// --- Partition ----------------------------------------------------------------------------------

std::vector<std::uint64_t> costs_of(level up_to) {
  std::vector<std::uint64_t> costs;
  for (const planned_case& c : plan_built_in(kernel_filter(""), up_to, 1, profile::nvidia)) {
    costs.push_back(cost_of(c.kernel, c.name));
  }
  return costs;
}

TEST(shard, each_case_is_in_one_and_the_load_is_even) {
  for (const level up_to : {level::smoke, level::acceptance}) {
    const std::vector<std::uint64_t> costs = costs_of(up_to);
    const std::uint64_t all = std::accumulate(costs.begin(), costs.end(), std::uint64_t{0});
    const std::uint64_t dearest = *std::max_element(costs.begin(), costs.end());
    for (int n = 1; n <= 17; ++n) {
      std::vector<int> seen(costs.size(), 0);
      std::uint64_t most = 0;
      for (int i = 1; i <= n; ++i) {
        std::uint64_t load = 0;
        for (const std::size_t item : items_of({i, n}, costs)) {
          ++seen[item];
          load += costs[item];
        }
        most = std::max(most, load);
      }
      EXPECT_EQ(seen, std::vector<int>(costs.size(), 1)) << n;
      // No shard can be shorter than the dearest case.
      const std::uint64_t least = std::max(all / static_cast<std::uint64_t>(n), dearest);
      EXPECT_LE(static_cast<double>(most), 1.01 * static_cast<double>(least))
          << n << " shards of level " << name_of(up_to);
    }
  }
}

// The table is of the cases that there are, and a named case's cost is not its kernel's.
TEST(shard, costs_are_those_of_the_table) {
  EXPECT_GT(cost_of("mxfp4_q_quant", "t1023_h64_p65_mixed"),
            100 * cost_of("mxfp4_q_quant", "t2_h3_p4_ties"));
  EXPECT_NE(cost_of("mxfp4_q_quant", ""), cost_of("fused_layout", ""));
  std::map<std::string, std::size_t> dear;
  for (const planned_case& c :
       plan_built_in(kernel_filter(""), level::exhaustive, 1, profile::nvidia)) {
    dear[c.kernel] += cost_of(c.kernel, c.name) != cost_of(c.kernel, "");
  }
  std::size_t named = 0;
  for (const auto& [kernel, n] : dear) named += n;
  std::ifstream table(KVCTS_SOURCE_DIR "/conformance/runner/case_costs.def");
  std::size_t lines = 0;
  for (std::string line; std::getline(table, line);) lines += line.rfind("LARGE(\"", 0) == 0;
  EXPECT_EQ(named, lines) << "cases were renamed: run costs.py";
}

// The parts as they are today: another compiler or machine must find the same.
TEST(shard, partition_is_fixed) {
  EXPECT_EQ(partition({5, 1, 9, 5, 5, 2}, 3), (std::vector<int>{2, 3, 1, 3, 2, 3}));
  EXPECT_EQ(partition({0, 0, 0}, 2), (std::vector<int>{1, 2, 1}));
  EXPECT_TRUE(items_of({3, 3}, {1, 1}).empty());
}

// --- Option and environment ---------------------------------------------------------------------

shard_choice choose(const std::string& option, const std::map<std::string, std::string>& given) {
  return choose_shard(option, [&](const char* name) -> const char* {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : found->second.c_str();
  });
}

std::string slurm(const std::string& id, const std::string& count, const std::string& first,
                  const std::string& last, const std::string& step) {
  return text_of(choose("", {{"SLURM_ARRAY_TASK_ID", id},
                             {"SLURM_ARRAY_TASK_COUNT", count},
                             {"SLURM_ARRAY_TASK_MIN", first},
                             {"SLURM_ARRAY_TASK_MAX", last},
                             {"SLURM_ARRAY_TASK_STEP", step}})
                     .part);
}

TEST(shard, is_taken_from_option_or_environment) {
  EXPECT_TRUE(choose("", {}).part.is_whole());
  EXPECT_TRUE(choose("", {}).notice.empty());
  EXPECT_EQ(text_of(choose("2/4", {}).part), "2/4");
  const shard_choice gtest = choose("", {{"GTEST_TOTAL_SHARDS", "5"}, {"GTEST_SHARD_INDEX", "0"}});
  EXPECT_EQ(text_of(gtest.part), "1/5");
  EXPECT_NE(gtest.notice.find("GTEST_TOTAL_SHARDS"), std::string::npos);
  const shard_choice both =
      choose("2/4", {{"GTEST_TOTAL_SHARDS", "5"}, {"GTEST_SHARD_INDEX", "0"}});
  EXPECT_EQ(text_of(both.part), "2/4");
  EXPECT_NE(both.notice.find("GTEST_TOTAL_SHARDS is not followed"), std::string::npos);
  EXPECT_EQ(slurm("0", "4", "0", "3", "1"), "1/4");
  EXPECT_EQ(slurm("4", "4", "1", "4", "1"), "4/4");
  EXPECT_EQ(slurm("16", "4", "10", "16", "2"), "4/4");
}

TEST(shard, refuses_what_is_none) {
  for (const char* bad : {"0/4", "5/4", "4", "/4", "1/", "a/b", "1/4/2", "-1/4", "1/0", "1/100001",
                          " 1/4", "1/99999999999999999999"}) {
    EXPECT_THROW(parse_shard(bad), input_error) << bad;
  }
  EXPECT_THROW(choose("", {{"GTEST_TOTAL_SHARDS", "5"}}), input_error);
  EXPECT_THROW(choose("", {{"GTEST_TOTAL_SHARDS", "5"}, {"GTEST_SHARD_INDEX", "5"}}), input_error);
  EXPECT_THROW(choose("", {{"SLURM_ARRAY_TASK_ID", "1"}}), input_error);
  EXPECT_THROW(slurm("7", "3", "1", "7", "1"), input_error);  // 1, 2, 7
  EXPECT_THROW(slurm("12", "4", "10", "16", "5"), input_error);
}

// --- Merged reports -----------------------------------------------------------------------------

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string without_times(const std::string& report) {
  static const std::regex times("\"(seconds|time)\": [^,\n]*");
  return std::regex_replace(report, times, "\"$1\": 0");
}

run_result run_part(const std::string& kernels, candidate& subject, const shard& part) {
  run_options options;
  options.up_to = level::smoke;
  std::vector<planned_case> plan =
      plan_built_in(kernel_filter(kernels), level::smoke, 1, profile::nvidia);
  const std::uint64_t all = plan.size();
  const std::string digest = plan_digest(plan, options);
  keep_shard(plan, part);
  run_result result = run_suite(plan, subject, options);
  if (part.is_whole()) return result;
  result.shard = part.index;
  result.shards = part.count;
  result.cases_of_all = all;
  result.plan_digest = digest;
  result.program_digest = std::string(64, 'a');
  result.verdict = verdict_of(result);
  return result;
}

// A candidate with a fault: its places and its diagnosis come through the merge too. The last
// shards of 40 are empty.
TEST(merge, gives_the_whole_run_of_a_faulty_candidate) {
  const fault* wrong = find_fault("e2m1_ties_away");
  ASSERT_NE(wrong, nullptr);
  const auto subject =
      candidate_of_rules("faulty", [&](profile p) { return rules_with(*wrong, p); });
  const std::string kernels = "mxfp4_q_quant,fused_layout";
  const run_result whole = run_part(kernels, *subject, {});
  EXPECT_EQ(whole.diagnoses.size(), 1u);
  for (const int n : {2, 5, 40}) {
    std::vector<shard_report> reports;
    for (int i = n; i >= 1; --i) {
      reports.push_back({std::to_string(i), run_part(kernels, *subject, {i, n})});
      // Written and read.
      const std::string text = report_json(reports.back().result);
      reports.back().result = parse_report(text, "r");
      EXPECT_EQ(report_json(reports.back().result), text);
    }
    const run_result merged = merge_shards(reports);
    EXPECT_EQ(without_times(report_json(merged)), without_times(report_json(whole))) << n;
    EXPECT_EQ(merged.exit_status(false), 1);
  }
}

std::string refusal(const std::vector<shard_report>& reports) {
  try {
    merge_shards(reports);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

TEST(merge, refuses_what_does_not_belong_together) {
  const auto subject = make_candidate("reference", 1);
  std::vector<shard_report> good;
  for (int i = 1; i <= 3; ++i) {
    good.push_back({"r" + std::to_string(i), run_part("mxfp4_q_quant", *subject, {i, 3})});
  }
  ASSERT_EQ(refusal(good), "");
  const auto expect = [&](const std::string& words, const std::function<void(run_result&)>& edit) {
    std::vector<shard_report> bad = good;
    edit(bad[1].result);
    EXPECT_NE(refusal(bad).find(words), std::string::npos) << words << ": " << refusal(bad);
  };
  expect("profile 'nvidia'", [](run_result& r) { r.profile = "ieee"; });
  expect("level 'smoke'", [](run_result& r) { r.level = "acceptance"; });
  expect("seed '1'", [](run_result& r) { r.seed = 2; });
  expect("candidate 'reference'", [](run_result& r) { r.candidate = "other"; });
  expect("candidate version", [](run_result& r) { r.candidate_version = "other"; });
  expect("candidate library sha256",
         [](run_result& r) { r.environment["candidate library sha256"] = "b"; });
  expect("program", [](run_result& r) { r.program_digest[0] = 'b'; });
  expect("suite", [](run_result& r) { r.plan_digest[0] ^= 1; });
  expect("shards '3'", [](run_result& r) { r.shards = 4; });
  expect("whole run", [](run_result& r) { r.shard = r.shards = 1; });
  expect("shard 1/3 is there twice", [](run_result& r) { r.shard = 1; });
  expect("is in no shard", [](run_result& r) { r.cases.pop_back(); });
  expect("twice", [](run_result& r) { r.cases.push_back(r.cases.back()); });
  expect("in no shard", [](run_result& r) { r.cases.back().position = 1000000; });
  EXPECT_NE(refusal({good[1]}).find("missing shards: 1/3, 3/3"), std::string::npos);
  EXPECT_NE(refusal({}).find("nothing to merge"), std::string::npos);
  // Another machine is none of them.
  std::vector<shard_report> spread = good;
  spread[1].result.environment["host"] = "elsewhere";
  spread[1].result.environment["devices"] = "0 (NVIDIA H200), 1 (NVIDIA H200)";
  EXPECT_NE(merge_shards(spread).environment["host"].find(", elsewhere"), std::string::npos);
}

TEST(merge, command_joins_runs_and_adequacy) {
  const scratch folder;
  const std::string in = folder.path("");
  const std::string run = "run --level smoke --threads 1 --kernels mxfp4_q_quant --report ";
  EXPECT_EQ(run_program(run + "whole", in).status, 0);
  EXPECT_EQ(run_program(run + "a --shard 1/2", in).status, 0);
  const program_result missing = run_program("report merge a -o m", in);
  EXPECT_EQ(missing.status, 2);
  EXPECT_NE(missing.err.find("missing shards: 2/2"), std::string::npos) << missing.err;
  EXPECT_EQ(run_program(run + "b --shard 2/2 --checkpoint c", in).status, 0);
  const program_result merged = run_program("report merge b a/report.json -o m", in);
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_NE(merged.out.find("verdict: conforms: "), std::string::npos);
  const std::string of_whole = text_of_file(folder.path("whole/report.json"));
  EXPECT_GT(of_whole.size(), 1000u);
  EXPECT_EQ(without_times(text_of_file(folder.path("m/report.json"))), without_times(of_whole));

  const std::string adequacy = "adequacy --threads 1 --kernels fused_layout,mxfp4_q_quant --json ";
  EXPECT_EQ(run_program(adequacy + "w.json", in).status, 0);
  EXPECT_EQ(run_program(adequacy + "1.json --shard 1/2", in).status, 0);
  EXPECT_EQ(run_program(adequacy + "2.json --shard 2/2", in).status, 0);
  EXPECT_EQ(run_program("report merge 2.json 1.json -o m", in).status, 0);
  EXPECT_EQ(text_of_file(folder.path("m/adequacy.json")), text_of_file(folder.path("w.json")));
  for (const auto& [files, words] :
       std::map<std::string, std::string>{{"1.json", "missing shards: 2/2"},
                                          {"1.json 1.json", "shard 1/2 is there twice"},
                                          {"w.json 1.json", "whole run"},
                                          {"1.json a", "a/report.json"},
                                          {"a 1.json", "1.json"}}) {
    const program_result r = run_program("report merge " + files + " -o n", in);
    EXPECT_EQ(r.status, 2) << files;
    EXPECT_NE(r.err.find(words), std::string::npos) << files << ": " << r.err;
  }
}

// More shards than a sweep has pieces: some have none of it.
TEST(merge, command_joins_sweeps) {
  const scratch folder;
  const std::string in = folder.path("");
  const std::string run =
      "exhaustive --threads 1 --sweeps 'shape.mxfp4_q_quant,shape.c*,format.*.decode' --report ";
  EXPECT_EQ(run_program(run + "whole", in).status, 0);
  std::string all;
  for (const char* i : {"1", "2", "3"}) {
    const program_result r = run_program(run + i + " --shard " + i + "/3", in);
    EXPECT_EQ(r.status, 0) << r.err;
    all += std::string(" ") + i;
  }
  const program_result merged = run_program("report merge" + all + " -o m", in);
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_NE(merged.out.find("8 sweeps"), std::string::npos) << merged.out;
  for (const char* file : {"report.json", "report.md"}) {
    const std::string of_whole = text_of_file(folder.path(std::string("whole/") + file));
    EXPECT_NE(of_whole.find("shape.mxfp4_q_quant"), std::string::npos) << file;
  }
  EXPECT_NE(text_of_file(folder.path("m/report.html")).find("shape.mxfp4_q_quant"),
            std::string::npos);
  EXPECT_EQ(without_times(text_of_file(folder.path("m/report.json"))),
            without_times(text_of_file(folder.path("whole/report.json"))));
}

TEST(shard, command_line_refuses_what_is_none) {
  for (const auto& [arguments, words] : std::map<std::string, std::string>{
           {"run --shard 5/4", "--shard '5/4'"},
           {"adequacy --shard x", "--shard 'x'"},
           {"adequacy --reduce --shard 1/2", "--reduce needs every trial"},
           {"run --shard 1/2 --require-evidence", "--require-evidence needs a whole run"},
           {"run --shard 1/2 --evidence e.json", "--evidence needs a whole run"}}) {
    const program_result r = run_program(arguments);
    EXPECT_EQ(r.status, 2) << arguments;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
  }
}

// --- Checkpoints --------------------------------------------------------------------------------

const std::string checkpointed =
    "run --level smoke --threads 1 --kernels mxfp4_q_quant,fused_save_compress_norm --repeat 5 "
    "--checkpoint c --report ";

std::size_t lines_in(const std::string& path) {
  const std::string text = text_of_file(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Starts the run and kills it once a few results are in the file.
void kill_half_way(const scratch& folder) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setpgid(0, 0);
    const std::string command = "cd '" + folder.path("") + "' && exec '" KVCTS_PROGRAM "' " +
                                checkpointed + "killed >/dev/null 2>&1";
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  while (lines_in(folder.path("c")) < 4 && waitpid(child, nullptr, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed";
}

TEST(checkpoint, a_killed_run_goes_on) {
  const scratch folder;
  const std::string in = folder.path("");
  const program_result whole = run_program(checkpointed + "whole", in);
  EXPECT_EQ(whole.status, 0) << whole.err;
  const std::size_t all = lines_in(folder.path("c"));
  ASSERT_EQ(std::remove(folder.path("c").c_str()), 0);

  kill_half_way(folder);
  const std::size_t done = lines_in(folder.path("c"));
  EXPECT_GE(done, 4u);
  EXPECT_LT(done, all);
  std::ofstream(folder.path("c"), std::ios::app) << "{\"position\": 3, \"torn";
  const program_result rest = run_program(checkpointed + "rest", in);
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE(rest.err.find(std::to_string(done - 1) + " of "), std::string::npos) << rest.err;
  EXPECT_EQ(lines_in(folder.path("c")), all);
  EXPECT_EQ(without_times(text_of_file(folder.path("rest/report.json"))),
            without_times(text_of_file(folder.path("whole/report.json"))));
}

case_result some_case(std::uint64_t position) {
  case_result c;
  c.position = position;
  c.kernel = "k";
  c.name = "n" + std::to_string(position);
  c.flags = {"A", "B"};
  c.provenance = "derived";
  c.source = "built-in";
  c.what = outcome::failed;
  c.bytes_compared = 7;
  c.bytes_different = 2;
  c.places = {{"out", 3, "token 1", "0x7E", "0x7F"}};
  c.message = "line\nline \"quoted\"";
  c.replay = "kvcts run";
  c.output_digests = {{"out", "ab"}};
  c.seconds = 0.25;
  c.digest = std::string(64, 'd');
  c.accuracy.resize(1);
  c.accuracy[0].argument = "out";
  c.accuracy[0].sqnr_db = 31.25;
  return c;
}

std::string refusal(const std::string& path, const checkpoint_identity& whose) {
  try {
    const checkpoint opened(path, whose);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

TEST(checkpoint, refuses_what_is_not_its_own) {
  const scratch folder;
  const std::string path = folder.path("c");
  const checkpoint_identity mine = {{"candidate", "cpu"}, {"seed", "1"}};
  {
    checkpoint c(path, mine);
    c.add(some_case(4));
    c.add(some_case(1));
    EXPECT_NE(refusal(path, mine).find("another run has it open"), std::string::npos);
  }
  {
    const checkpoint c(path, mine);
    EXPECT_EQ(c.size(), 2u);
    const case_result* back = c.find(4, "k", "n4");
    ASSERT_NE(back, nullptr);
    run_result a, b;
    a.shards = b.shards = 2;
    a.cases = {some_case(4)};
    b.cases = {*back};
    EXPECT_EQ(report_json(a), report_json(b));
    EXPECT_EQ(c.find(2, "k", "n2"), nullptr);
    EXPECT_THROW(c.find(4, "k", "other"), input_error);
  }
  EXPECT_NE(refusal(path, {{"candidate", "cpu"}, {"seed", "2"}}).find("seed 1, not 2"),
            std::string::npos);
  const std::string good = text_of_file(path);
  // A case twice, a broken line with others behind it, another file.
  const std::string last = good.substr(good.rfind('\n', good.size() - 2) + 1);
  std::ofstream(path) << good << last;
  EXPECT_NE(refusal(path, mine).find("damaged in line 4"), std::string::npos);
  std::ofstream(path) << good << "{}\n" << last;
  EXPECT_NE(refusal(path, mine).find("damaged in line 4"), std::string::npos);
  std::ofstream(path) << "anything\n";
  EXPECT_NE(refusal(path, mine).find("no checkpoint"), std::string::npos);
  std::ofstream(path) << "anything";
  EXPECT_NE(refusal(path, mine).find("no checkpoint"), std::string::npos);
  EXPECT_EQ(text_of_file(path), "anything");
  EXPECT_NE(refusal(folder.path("none/c"), mine).find("cannot be written"), std::string::npos);
  // Torn in the header: nothing was kept yet.
  std::ofstream(path) << good.substr(0, 9);
  EXPECT_EQ(refusal(path, mine), "");
}

}  // namespace
}  // namespace kvcts
