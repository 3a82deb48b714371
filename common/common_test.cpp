#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/printable.h"
#include "common/replaced_file.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

class replaced : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kvcts-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text_in(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(replaced, is_there_whole_or_not_at_all) {
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(replace_file(path("a"), "old"), "");
  {
    replaced_file file(path("a"));
    EXPECT_EQ(file.write(large), "");
    EXPECT_EQ(text_in(path("a")), "old");
    EXPECT_EQ(files(), 2);
  }
  EXPECT_EQ(text_in(path("a")), "old");  // never put
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(replace_file(path("a"), large), "");
  EXPECT_EQ(text_in(path("a")), large);
  EXPECT_EQ(files(), 1);
}

TEST_F(replaced, says_why_not_and_leaves_nothing) {
  EXPECT_EQ(replace_file(path("none/a"), "x"), "No such file or directory");
  fs::create_directory(path("d"));
  EXPECT_EQ(replace_file(path("d"), "x"), "it is a folder");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(replace_file(path("pipe"), "x"), "it is there and no regular file");
  EXPECT_EQ(replace_file("/dev/null", "x"), "it is there and no regular file");
  // A place that becomes a folder once the text is written.
  {
    replaced_file file(path("late"));
    EXPECT_EQ(file.write("x"), "");
    fs::create_directory(path("late"));
    EXPECT_EQ(file.put(), "Is a directory");
  }
  EXPECT_EQ(files(), 3);
}

TEST_F(replaced, a_link_stays_and_what_it_points_to_is_replaced) {
  EXPECT_EQ(replace_file(path("a"), "old"), "");
  fs::create_symlink("a", path("link"));
  EXPECT_EQ(replace_file(path("link"), "new"), "");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text_in(path("a")), "new");
}

TEST(printable_text, escapes_what_a_terminal_acts_on) {
  EXPECT_EQ(printable("plain \xC3\xA9 \xE2\x82\xAC"), "plain \xC3\xA9 \xE2\x82\xAC");
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");           // C1: another CSI
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(printable("\xFF\xC3"), "\\xff\\xc3");           // no UTF-8, cut UTF-8
  EXPECT_EQ(printable("\xC0\x80"), "\\xc0\\x80");           // an overlong zero
}

TEST(printable_text, is_cut) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abc\xC3\xA9", 4), "abc\\xc3...");
}

}  // namespace
}  // namespace kvcts
