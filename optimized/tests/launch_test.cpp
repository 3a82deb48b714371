// Launches may overlap (optimized/cuda/launch.h), so that a kernel that reads before it waits reads
// what an earlier one is still writing. No run shows that reliably; the sources do.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kvcts {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The first statement of each __global__ function.
std::vector<std::string> first_statements(const std::string& source) {
  std::vector<std::string> statements;
  for (std::size_t at = source.find("__global__"); at != std::string::npos;
       at = source.find("__global__", at + 1)) {
    const std::size_t body = source.find('{', at);
    const std::size_t start = source.find_first_not_of(" \n", body + 1);
    statements.push_back(source.substr(start, source.find(';', start) - start));
  }
  return statements;
}

TEST(Launches, EveryKernelWaitsForTheOneBeforeIt) {
  int kernels = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(KVCTS_SOURCE_DIR "/optimized/cuda")) {
    if (entry.path().filename() == "device.cu") continue;  // launched without overlap
    const std::string source = text_of(entry.path());
    for (const std::string& first : first_statements(source)) {
      EXPECT_EQ(first, "wait_for_earlier_kernel()") << entry.path();
      ++kernels;
    }
    EXPECT_EQ(source.find("<<<"), std::string::npos)
        << entry.path() << ": launch_kernel is for that";
  }
  EXPECT_GE(kernels, 15);
}

// Loads of this kind may move before the wait.
TEST(Launches, NoLoadTakesMemoryForReadOnly) {
  int files = 0;
  for (const char* folder : {"cuda", "kernels", "warp"}) {
    for (const auto& entry : std::filesystem::directory_iterator(
             std::string(KVCTS_SOURCE_DIR "/optimized/") + folder)) {
      const std::string source = text_of(entry.path());
      EXPECT_EQ(source.find("__ldg("), std::string::npos) << entry.path();
      EXPECT_EQ(source.find("ld.global.nc."), std::string::npos) << entry.path();
      ++files;
    }
  }
  EXPECT_GE(files, 50);
}

}  // namespace
}  // namespace kvcts
