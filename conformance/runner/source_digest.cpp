#include "conformance/runner/source_digest.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

#include "reference/layout/tensor.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::string without_comments(std::string_view text, bool is_cmake) {
  std::string kept;
  bool space = false;
  const auto keep = [&](char c) {
    if (space && !kept.empty()) kept += ' ';
    space = false;
    kept += c;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if ((is_cmake && c == '#') || (!is_cmake && c == '/' && next == '/')) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
      space = true;
    } else if (!is_cmake && c == '/' && next == '*') {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 1;
      space = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      space = true;
    } else if (c == '"' ||
               (!is_cmake && c == '\'' &&
                !(i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0))) {
      // A text, or a character (a quote behind a digit is a separator: 1'000).
      keep(c);
      while (++i < text.size() && text[i] != c) {
        kept += text[i];
        if (text[i] == '\\' && i + 1 < text.size()) kept += text[++i];
      }
      if (i < text.size()) kept += c;
    } else {
      keep(c);
    }
  }
  return kept;
}

std::string digest_of_sources(const std::string& root, std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& name : files) {
    std::ifstream in(root + "/" + name, std::ios::binary);
    if (!in) throw input_error("cannot read " + root + "/" + name);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    all +=
        name + '\n' + without_comments(text, ends_with(name, ".txt") || ends_with(name, ".cmake"));
    all += '\n';
  }
  return sha256(reinterpret_cast<const std::byte*>(all.data()), all.size());
}

}  // namespace kvcts
