// The program's arguments, one a line. What they choose does nothing here. A run ends with status
// 0, or with 2 and one line.
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/cli/commands.h"
#include "conformance/cli/text.h"
#include "vectors/probe.h"

namespace kvcts {

int list_command(const std::string&, const suite_arguments&) { return 0; }
int describe_command(const std::string&, bool) { return 0; }
int init_candidate_command(const std::string&, const std::string&) { return 0; }
int run_command(const run_arguments&) { return 0; }
int merge_command(const merge_arguments&) { return 0; }
int accept_command(const accept_arguments&) { return 0; }
int report_check_command(const std::string&, bool) { return 0; }
int report_show_command(const report_show_arguments&) { return 0; }
int report_diff_command(const std::string&, const std::string&) { return 0; }
int exhaustive_command(const exhaustive_arguments&) { return 0; }
int fuzz_command(const fuzz_arguments&) { return 0; }
int adequacy_command(const adequacy_arguments&) { return 0; }
int bench_command(const bench_arguments&) { return 0; }
int generate_command(const suite_arguments&, const std::string&, int) { return 0; }
int generate_golden_command(const std::string&, int) { return 0; }
int inspect_command(const std::string&) { return 0; }
int check_command(const std::string&, const std::string&, int) { return 0; }
int verify_command(const exchange_arguments&) { return 0; }
int compare_command(const exchange_arguments&) { return 0; }
int decode_command(const decode_arguments&) { return 0; }
int probe_main(const char*) { return 0; }
void clear_progress() {}

namespace {

// Standard output and error, for what is said in between.
class redirected {
 public:
  explicit redirected(int to) {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      kept_[fd - 1] = ::dup(fd);
      ::dup2(to, fd);
    }
  }
  ~redirected() {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      ::dup2(kept_[fd - 1], fd);
      ::close(kept_[fd - 1]);
    }
  }
  redirected(const redirected&) = delete;
  redirected& operator=(const redirected&) = delete;

 private:
  int kept_[2];
};

std::string take(int fd) {
  std::string said(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  const ssize_t got = ::pread(fd, said.data(), said.size(), 0);
  said.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  if (::ftruncate(fd, 0) != 0 || ::lseek(fd, 0, SEEK_SET) != 0) std::abort();
  return said;
}

}  // namespace
}  // namespace kvcts

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int said_to = [] {
    __sanitizer_set_report_fd(
        reinterpret_cast<void*>(static_cast<std::intptr_t>(::dup(2))));  // not swallowed
    return ::memfd_create("said", 0);
  }();
  std::vector<std::string> words = {"kvcts"};
  std::string word;
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      words.push_back(word);
      word.clear();
    } else if (data[i] != 0) {
      word += static_cast<char>(data[i]);
    }
  }
  if (!word.empty()) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);

  int status = 0;
  {
    const kvcts::redirected quiet(said_to);
    status = kvcts::run_cli(static_cast<int>(words.size()), argv.data());
  }
  const std::string said = kvcts::take(said_to);
  const bool one_line = said.find('\n') == said.size() - 1;
  const bool refused = status == 2 && said.rfind("kvcts: ", 0) == 0 && one_line;
  if ((status != 0 && !refused) || said.rfind("kvcts: internal error: ", 0) == 0) {
    std::fprintf(stderr, "status %d: %s\n", status, said.c_str());
    std::abort();
  }
  return 0;
}
