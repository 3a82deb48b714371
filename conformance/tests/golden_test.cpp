// The golden files: what the generators and the reference make today is what is stored.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "conformance/runner/oracle.h"
#include "conformance/runner/run.h"
#include "conformance/tests/tools.h"
#include "reference/contract/contract.h"
#include "vectors/file.h"
#include "vectors/version.h"

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

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// "    SHA-256  golden/MANIFEST", a line each: the manifest and the captured vectors of today.
std::string digest_lines() {
  const fs::path vectors = fs::path(KVCTS_SOURCE_DIR) / "vectors";
  std::set<std::string> names = {"golden/MANIFEST"};
  for (const fs::directory_entry& entry : fs::directory_iterator(vectors / "captured")) {
    if (entry.path().extension() == ".h5") {
      names.insert("captured/" + entry.path().filename().string());
    }
  }
  std::string lines;
  for (const std::string& name : names) {
    const std::string bytes = text_of_file(vectors / name);
    lines += "    " + sha256(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()) +
             "  " + name + "\n";
  }
  return lines;
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

// What is wrong with the changelog of expected bytes; nothing where all is well.
std::string fault_of_changelog(const std::string& text, int version, const std::string& digests) {
  struct entry {
    int version;
    std::set<std::string> digests;
    bool says_why = false;
  };
  std::vector<entry> entries;
  std::istringstream in(text);
  const std::regex digest_line("    [0-9a-f]{64}  [a-z]+/[A-Za-z0-9_.]+");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## Version ", 0) == 0) entries.push_back({std::stoi(line.substr(11)), {}});
    if (entries.empty()) continue;
    if (std::regex_match(line, digest_line)) entries.back().digests.insert(line);
    entries.back().says_why = entries.back().says_why || line.rfind("- ", 0) == 0;
  }
  if (entries.empty() || entries.front().version != version) {
    return "the top entry is not of suite_version " + std::to_string(version);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].version != version - static_cast<int>(i)) return "versions do not count down";
    if (!entries[i].says_why) return "an entry says nothing";
    if (i > 0 && entries[i].digests == entries[i - 1].digests) return "an entry changes nothing";
  }
  if (entries.back().version != 1) return "the first version is missing";
  if (entries.front().digests == lines_of(digests)) return "";
  return "expected bytes have changed: raise suite_version in vectors/version.h and put on top of "
         "the entries of vectors/CHANGELOG.md\n\n## Version " +
         std::to_string(version + 1) + "\n\n" + digests + "\n- what changed, and why\n";
}

TEST(changelog, names_the_expected_bytes_of_today) {
  EXPECT_EQ(fault_of_changelog(text_of_file(KVCTS_SOURCE_DIR "/vectors/CHANGELOG.md"),
                               suite_version, digest_lines()),
            "");
}

TEST(changelog, sees_a_change_without_version_or_entry) {
  const auto digest = [](char c) { return "    " + std::string(64, c) + "  golden/MANIFEST\n"; };
  const auto entry = [&](int version, char c) {
    return "## Version " + std::to_string(version) + "\n\n" + digest(c) + "\n- why\n\n";
  };
  const std::string log = "# Title\n\n" + entry(2, 'b') + entry(1, 'a');
  EXPECT_EQ(fault_of_changelog(log, 2, digest('b')), "");
  EXPECT_EQ(fault_of_changelog(log, 2, digest('c')).rfind("expected bytes have changed", 0), 0u);
  EXPECT_NE(fault_of_changelog(log, 2, digest('c')).find("## Version 3\n\n" + digest('c')),
            std::string::npos);
  EXPECT_EQ(fault_of_changelog(log, 3, digest('b')), "the top entry is not of suite_version 3");
  EXPECT_EQ(fault_of_changelog(entry(3, 'c') + log, 3, digest('c')), "");
  EXPECT_EQ(fault_of_changelog(entry(3, 'b') + log, 3, digest('b')), "an entry changes nothing");
  EXPECT_EQ(fault_of_changelog(entry(4, 'c') + log, 4, digest('c')), "versions do not count down");
  EXPECT_EQ(fault_of_changelog("## Version 3\n" + digest('c') + log, 3, digest('c')),
            "an entry says nothing");
  EXPECT_EQ(fault_of_changelog(entry(2, 'b'), 2, digest('b')), "the first version is missing");
}

}  // namespace
}  // namespace kvcts
