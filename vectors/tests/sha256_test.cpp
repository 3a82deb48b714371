#include "vectors/sha256.h"

#include <gtest/gtest.h>

#include "vectors/file.h"

namespace kvcts {
namespace {

std::string of_text(const std::string& text) {
  return sha256(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// The examples that FIPS 180 gives for SHA-256.
TEST(sha256, fips_180_examples) {
  EXPECT_EQ(of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of_text(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of_text("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                    "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(of_text(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256, pieces_of_any_size_are_the_whole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t length = 0; length < text.size(); ++length) {
    sha256_stream stream;
    for (std::size_t at = 0, piece = 1; at < length; piece = piece * 3 % 71) {
      const std::size_t taken = std::min(piece, length - at);
      stream.add(text.data() + at, taken);
      at += taken;
    }
    ASSERT_EQ(stream.finish(), of_text(text.substr(0, length))) << length;
  }
}

}  // namespace
}  // namespace kvcts
