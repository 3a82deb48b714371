// --devices: cases spread over several GPUs, here those of the stand-in driver.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

using json = nlohmann::json;
using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

constexpr const char* library = KVCTS_TEST_CANDIDATES "/";

class devices : public testing::Test {
 protected:
  void SetUp() override {
    setenv("LD_LIBRARY_PATH", KVCTS_TEST_CANDIDATES "/stand_in", 1);
    setenv("KVCTS_STAND_IN_DEVICES", "3", 1);
    setenv("KVCTS_STAND_IN_LOG", log().c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"LD_LIBRARY_PATH", "KVCTS_STAND_IN_DEVICES", "KVCTS_STAND_IN_LOG",
                             "CUDA_VISIBLE_DEVICES"}) {
      unsetenv(name);
    }
  }
  std::string log() const { return folder_.path("log"); }
  // Device -> how often it was waited for.
  std::map<std::string, int> used() const {
    std::map<std::string, int> count;
    std::ifstream in(log());
    for (std::string line; std::getline(in, line);) ++count[line];
    return count;
  }
  program_result run(const std::string& candidate, const std::string& options) const {
    return run_program("run --level smoke --kernels fused_layout --candidate " +
                           (library + candidate) + ".so " + options,
                       folder_.path(""));
  }
  // Without what may differ: times, and the environment.
  json report(const std::string& candidate, const std::string& options, json* environment) const {
    run(candidate, options + " --report r");
    std::ifstream in(folder_.path("r/report.json"));
    json made = json::parse(in);
    if (environment != nullptr) *environment = made["environment"];
    made.erase("environment");
    made["totals"].erase("seconds");
    for (json& c : made["cases"]) c.erase("seconds");
    return made;
  }

  scratch folder_;
};

TEST_F(devices, cases_are_dealt_out_evenly) {
  const program_result r = run("cuda_conforms", "--devices all");
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  const std::map<std::string, int> count = used();
  ASSERT_EQ(count.size(), 3U);
  // 24 cases, two passes each, waited for before and after.
  for (const auto& [device, times] : count) EXPECT_EQ(times, 32) << device;
}

TEST_F(devices, a_list_names_them) {
  EXPECT_EQ(run("cuda_conforms", "--devices 2,0").status, 0);
  EXPECT_EQ(used(), (std::map<std::string, int>{{"0", 48}, {"2", 48}}));
}

// What this process does not see is not counted; the worker is told the machine's number.
TEST_F(devices, the_visible_ones_are_taken) {
  setenv("CUDA_VISIBLE_DEVICES", "2,1", 1);
  EXPECT_EQ(run("cuda_conforms", "--devices all").status, 0);
  EXPECT_EQ(used(), (std::map<std::string, int>{{"1", 48}, {"2", 48}}));
}

TEST_F(devices, the_report_is_the_same_whatever_their_number) {
  for (const char* candidate : {"cuda_conforms", "cuda_writes_behind", "cuda_faults"}) {
    json with;
    const json one = report(candidate, "", nullptr);
    const json three = report(candidate, "--devices all", &with);
    EXPECT_TRUE(one == three) << candidate << json::diff(one, three).dump();
    EXPECT_EQ(with["devices"], "0 (stand-in 0), 1 (stand-in 1), 2 (stand-in 2)");
  }
}

TEST_F(devices, bad_lists_are_refused) {
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const program_result r = run_program("run --level smoke " + arguments, folder_.path(""));
    EXPECT_EQ(r.status, 2) << arguments << r.out;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  };
  const std::string good = std::string("--candidate ") + library + "cuda_conforms.so ";
  refused(good + "--devices 3", "'3' is no device: give all, or numbers from 0 to 2");
  refused(good + "--devices 1,x", "'x' is no device");
  refused(good + "--devices 1,1", "names device 1 twice");
  refused("--candidate cpu --devices all", "candidate cpu runs on no CUDA device");
  refused(std::string("--candidate ") + library + "reference_cpu.so --devices all",
          "takes host memory");
  setenv("LD_LIBRARY_PATH", "/nowhere", 1);
  refused(good + "--devices all", "no CUDA driver");
}

}  // namespace
}  // namespace kvcts
