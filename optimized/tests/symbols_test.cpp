// The object code of a CPU target must hold no symbol that another file could be linked against:
// a weak copy of a shared function, compiled for AVX-512, could be taken for all of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace kvcts {
namespace {

struct symbol {
  std::string object;  // of the archive
  char kind;           // as nm prints it
  std::string name;
};

std::vector<symbol> symbols_of(const std::string& archive) {
  const std::string command = "nm -C '" + archive + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<symbol> symbols;
  std::string object;
  std::string line;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (!line.empty() && line.back() == ':') {
      object = line.substr(0, line.size() - 1);
    } else if (line.size() > 19) {  // 16 digits or spaces, a space, the kind, a space, the name
      symbols.push_back({object, line[17], line.substr(19)});
    }
    line.clear();
  }
  return symbols;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

TEST(Symbols, TargetsKeepTheirCodeToThemselves) {
  int tables = 0;
  for (const symbol& s : symbols_of(KVCTS_OPTIMIZED_ARCHIVE)) {
    if (!starts_with(s.object, "target_")) continue;
    const std::string target = s.object.substr(7, s.object.find('.') - 7);
    if (s.name == "kvcts::" + target + "::kernels") {
      ++tables;
      continue;
    }
    if (starts_with(s.name, "__odr_asan")) continue;  // a marker of AddressSanitizer
    // Upper case: global; W, V, u: may be merged with another file's. U: used, not defined.
    const bool is_shared = s.kind == 'u' || s.kind == 'w' || s.kind == 'v' ||
                           (s.kind >= 'A' && s.kind <= 'Z' && s.kind != 'U');
    EXPECT_FALSE(is_shared) << s.object << ": " << s.kind << ' ' << s.name;
    // Nor may it call what the standard library instantiates elsewhere.
    EXPECT_FALSE(s.kind == 'U' && s.name.find("std::") != std::string::npos)
        << s.object << " uses " << s.name;
  }
  EXPECT_EQ(tables, KVCTS_CPU_TARGETS);
}

}  // namespace
}  // namespace kvcts
