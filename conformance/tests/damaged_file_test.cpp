// Damaged vector files through the whole program: each ends with a clean read or with one line.
#include <fcntl.h>
#include <hdf5.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "conformance/tests/tools.h"
#include "vectors/file.h"
#include "vectors/tests/hdf5_edit.h"

extern "C" char** environ;

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using testing_tools::case_named;
using testing_tools::editor;
using testing_tools::scratch;

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class random_bits {
 public:
  explicit random_bits(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t below(std::uint64_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % limit;
  }

 private:
  std::uint64_t state_;
};

// Flips bits, cuts, moves blocks, overwrites what may be a size, an address or a count.
std::string damaged(std::string bytes, std::uint64_t seed) {
  random_bits random(seed);
  const auto flip = [&](std::uint64_t count) {
    for (; count > 0; --count) {
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
    }
  };
  switch (seed % 6) {
    case 0:
      flip(1 + random.below(4));
      break;
    case 1:
      flip(8 + random.below(64));
      break;
    case 2:
      bytes.resize(random.below(bytes.size()));
      break;
    case 3: {
      const std::uint64_t size = 1 + random.below(512);
      const std::string block = bytes.substr(random.below(bytes.size()), size);
      bytes.replace(random.below(bytes.size()), block.size(), block);
      break;
    }
    case 4: {
      const std::uint64_t values[] = {0,
                                      1,
                                      0xFF,
                                      bytes.size(),
                                      std::uint64_t{1} << 32,
                                      (std::uint64_t{1} << 63) - 1,
                                      ~std::uint64_t{0}};
      const std::size_t size = std::size_t{1} << random.below(4);
      const std::size_t at = random.below(bytes.size() / size) * size;
      const std::uint64_t value = values[random.below(std::size(values))];
      bytes.replace(at, size, reinterpret_cast<const char*>(&value), size);
      break;
    }
    default: {
      const std::uint64_t at = random.below(bytes.size());
      const std::uint64_t size = std::min<std::uint64_t>(random.below(64), bytes.size() - at);
      for (std::uint64_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(random.below(256));
    }
  }
  return bytes;
}

struct program_end {
  bool hung = false;
  int status = 0;  // of waitpid
  std::string out, err;
};

// Without a shell, which would take as long as the program.
program_end run_quickly(const std::vector<std::string>& arguments, const std::string& folder,
                        const scratch& said) {
  std::vector<std::string> words = {KVCTS_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.path("out").c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, said.path("err").c_str(), flags, 0600);
  pid_t child = 0;
  program_end end;
  EXPECT_EQ(::posix_spawn(&child, KVCTS_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (::waitpid(child, &end.status, WNOHANG) == 0) {
    if (!end.hung && std::chrono::steady_clock::now() > deadline) {
      end.hung = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  end.out = text_of_file(said.path("out"));
  end.err = text_of_file(said.path("err"));
  return end;
}

// Small cases: most of the file is HDF5's own structure.
suite small_suite() {
  suite s;
  s.info.producer = "engine";
  for (const auto& [kernel, name] :
       {std::pair("combine_topk_swa_indices", "t5_r2_w0_c2_k0_n700_pad1_spare2"),
        std::pair("fused_layout", "o_chunk_h2_d64_g1_bf16_x0_guard"),
        std::pair("mxfp4_q_quant", "t2_h3_p4_allnan")}) {
    s.cases.push_back(case_named(kernel, name));
    s.cases.back().actual = s.cases.back().expected;
  }
  return s;
}

// The same in HDF5's older form: no checksums, and text of variable length, which damage leads
// anywhere.
void write_old_form(const std::string& path, const std::string& from_path, const suite& s) {
  {
    const hid_t from = H5Fopen(from_path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t to = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (const test_case& c : s.cases) {
      const std::string kernel = "/" + c.kernel;
      ASSERT_GE(H5Ocopy(from, kernel.c_str(), to, kernel.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
    }
    H5Fclose(to);
    H5Fclose(from);
  }
  editor edit(path);
  edit.variable_text("/", "schema", "kvcts-vectors");
  edit.attribute("/", "schema_version", std::int64_t{1});
  edit.variable_text("/", "profile", "nvidia");
  for (const test_case& c : s.cases) {
    edit.variable_texts("/" + c.kernel + "/" + c.name, "flags", {"One", "Two", "Three"});
  }
}

// A command, and the seeds first, first + 5, ...: together they take a thousand.
struct through {
  const char* name;
  int first;
  std::vector<std::string> arguments;
};
class damaged_files : public ::testing::TestWithParam<through> {};
INSTANTIATE_TEST_SUITE_P(
    go, damaged_files,
    ::testing::Values(
        through{"inspect", 0, {"vectors", "inspect", "bad.h5"}},
        through{"check", 1, {"vectors", "check", "bad.h5", "--threads", "1"}},
        through{"run", 2, {"run", "--vectors", "bad.h5", "--threads", "1"}},
        through{"verify_a_bad_copy", 3, {"verify", "good.h5", "bad.h5"}},
        through{"verify_against_a_bad_suite", 4, {"verify", "bad.h5", "good.h5", "--report", "r"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(damaged_files, end_clean_or_refused) {
  const scratch folder, said;
  write_vectors(folder.path("good.h5"), small_suite());
  write_old_form(folder.path("bad.h5"), folder.path("good.h5"), small_suite());
  const std::string good[] = {text_of_file(folder.path("good.h5")),
                              text_of_file(folder.path("bad.h5"))};
  ::setenv("KVCTS_PROBE_SECONDS", "5", 1);
  // Under sanitizers the program takes many times as long to start.
  const int mutations = testing_tools::is_sanitized() ? 10 : 200;
  int clean = 0, refused = 0;
  for (int i = 0; i < mutations; ++i) {
    const auto seed = static_cast<std::uint64_t>(i * 5 + GetParam().first);
    std::ofstream(folder.path("bad.h5"), std::ios::binary) << damaged(good[i % 2], seed);
    const program_end end = run_quickly(GetParam().arguments, folder.path(""), said);
    const std::string which = "seed " + std::to_string(seed) + ": " + end.err;
    ASSERT_FALSE(end.hung) << which;
    ASSERT_TRUE(WIFEXITED(end.status)) << which;
    const int status = WEXITSTATUS(end.status);
    if (status == 2) {
      ++refused;
      EXPECT_EQ(end.err.rfind("kvcts: ", 0), 0u) << which;
      EXPECT_EQ(end.err.find('\n'), end.err.size() - 1) << which;
      EXPECT_EQ(end.err.find("internal error"), std::string::npos) << which;
      EXPECT_FALSE(fs::exists(folder.path("r"))) << which;
    } else {
      ++clean;
      EXPECT_TRUE(status == 0 || status == 1) << which << status;
      EXPECT_TRUE(end.err.empty()) << which;
    }
    fs::remove_all(folder.path("r"));
    const auto files = std::distance(fs::directory_iterator(folder.path("")), {});
    ASSERT_EQ(files, 2) << which;
  }
  ::unsetenv("KVCTS_PROBE_SECONDS");
  // Both ends are reached, so that the damage is neither none nor total.
  EXPECT_GT(clean, mutations / 20);
  EXPECT_GT(refused, mutations / 20);
}

}  // namespace
}  // namespace kvcts
