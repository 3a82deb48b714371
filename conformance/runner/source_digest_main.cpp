// kvcts_source_digest ROOT OUT.cpp FILE...: writes a source file that holds the digest of FILEs.
#include <cstdio>
#include <exception>
#include <fstream>

#include "conformance/runner/source_digest.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const std::string digest = kvcts::digest_of_sources(argv[1], {argv + 3, argv + argc});
    std::ofstream out(argv[2]);
    out << "#include \"conformance/runner/evidence.h\"\n\nnamespace kvcts {\n"
        << "const char* const kernel_sources_digest = \"" << digest << "\";\n}\n";
    return out ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
