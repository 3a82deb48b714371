// The object code of a CPU target must hold no symbol that another file could be linked against:
// a weak copy of a shared function, compiled for AVX-512, could be taken for all of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace kvcts {
namespace {

struct target_objects {
  const char* target;
  const char* list;  // a file that names the objects, a line each
};
constexpr target_objects all_objects[] = {KVCTS_CPU_OBJECTS};

struct symbol {
  char kind;  // as nm prints it
  std::string name;
};

std::vector<symbol> symbols_of(const std::string& object) {
  const std::string command = "nm -C '" + object + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<symbol> symbols;
  std::string line;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    // 16 digits or spaces, a space, the kind, a space, the name
    if (line.size() > 19) symbols.push_back({line[17], line.substr(19)});
    line.clear();
  }
  return symbols;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

TEST(Symbols, TargetsKeepTheirCodeToThemselves) {
  for (const auto& [target, list] : all_objects) {
    const std::string own = "kvcts::" + std::string(target) + "::";
    std::ifstream objects(list);
    std::string object;
    int kernels = 0;
    while (std::getline(objects, object)) {
      for (const symbol& s : symbols_of(object)) {
        // Before the parameters: a template's name comes behind its result type.
        const std::string name = s.name.substr(0, s.name.find('('));
        kernels += s.kind == 'T' && starts_with(name, own);
        // A marker of AddressSanitizer, and the compiler's reference to its unwinder.
        if (starts_with(name, "__odr_asan") || starts_with(name, "DW.ref.")) continue;
        // Upper case: global; W, V, u: may be merged with another file's. U: used, not defined.
        const bool is_shared = s.kind == 'u' || s.kind == 'w' || s.kind == 'v' ||
                               (s.kind >= 'A' && s.kind <= 'Z' && s.kind != 'U');
        EXPECT_FALSE(is_shared && name.find(own) == std::string::npos)
            << object << ": " << s.kind << ' ' << s.name;
        // Nor may it call what the standard library instantiates elsewhere.
        EXPECT_FALSE(s.kind == 'U' && s.name.find("std::") != std::string::npos)
            << object << " uses " << s.name;
      }
    }
    EXPECT_GE(kernels, 2) << list;
  }
}

}  // namespace
}  // namespace kvcts
