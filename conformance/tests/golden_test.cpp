// The golden files: what the generators and the reference make today is what is stored.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "reference/contract/contract.h"
#include "vectors/file.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
const std::string folder = KVCTS_SOURCE_DIR "/vectors/golden";

std::map<std::string, std::string> manifest() {
  std::map<std::string, std::string> digests;
  std::ifstream in(folder + "/MANIFEST");
  std::string digest, name;
  while (in >> digest >> name) digests[name] = digest;
  return digests;
}

TEST(golden, manifest_names_every_file) {
  std::set<std::string> files, named;
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".h5") continue;
    files.insert(entry.path().filename().string());
    bytes += entry.file_size();
  }
  for (const auto& [name, digest] : manifest()) named.insert(name);
  EXPECT_EQ(files, named);
  EXPECT_EQ(files.size(), 2 * contracts().size());
  EXPECT_LT(bytes, 12u << 20);
}

TEST(golden, files_have_the_digests_of_the_manifest) {
  for (const auto& [name, digest] : manifest()) {
    EXPECT_EQ(digest_of(vector_file(folder + "/" + name)), digest) << name;
  }
}

// Generates again; mend a wanted change with `kvcts vectors generate --golden vectors/golden`.
TEST(golden, cases_are_generated_again) {
  for (const auto& [name, digest] : manifest()) {
    const vector_file file(folder + "/" + name);
    const profile p = profile_from_name(file.info().profile);
    ASSERT_FALSE(file.cases().empty());
    std::map<std::string, test_case> built;
    std::vector<std::string> digests;
    for (const case_spec& spec :
         cases_of(file.cases().front().kernel, level::smoke, file.info().seed)) {
      test_case c = spec.build();
      fill_expected(c, p);
      digests.push_back(digest_of(c));
      built.emplace(spec.name, std::move(c));
    }
    EXPECT_EQ(digest_of(file.info().profile, digests), digest) << name;
    EXPECT_EQ(built.size(), file.cases().size());
    for (const vector_file::entry& entry : file.cases()) {
      const auto at = built.find(entry.name);
      ASSERT_NE(at, built.end()) << entry.name << " is not built any more";
      EXPECT_EQ(digest_of(file.read(entry)), digest_of(at->second)) << name << ": " << entry.name;
    }
  }
}

}  // namespace
}  // namespace kvcts
