// Files that Python writes, and our files as Python sees them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

int python(const std::string& script, const std::string& file) {
  return std::system(
      (std::string(KVCTS_PYTHON) + " " + KVCTS_SOURCE_DIR + "/vectors/tests/" + script + " " + file)
          .c_str());
}

// The script writes the sample's first insert case in the manner of h5py: variable-length strings,
// numpy booleans and integers, its own compression; bytes by a formula.
TEST(h5py, a_file_of_its_own_is_read) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  ASSERT_EQ(python("h5py_write.py", path + " gzip"), 0);
  EXPECT_EQ(error_of_reading(path), "");
  const vector_file file(path);
  ASSERT_EQ(file.cases().size(), 1u);
  const test_case c = file.read(file.cases()[0]);
  EXPECT_EQ(c.flags, (std::vector<std::string>{"FromPython", "StridedPage"}));
  EXPECT_EQ(c.attributes.at("use_fnuz"), attribute_value(std::int64_t{1}));
  EXPECT_EQ(c.attributes.at("block_size"), attribute_value(std::int64_t{4}));
  const buffer* k = c.input("k");
  ASSERT_NE(k, nullptr);
  ASSERT_EQ(k->at, dense({6, 512}));
  for (std::int64_t i = 0; i < 6 * 512; ++i) {
    ASSERT_EQ(load<std::uint16_t>(k->bytes.data() + 2 * i),
              static_cast<std::uint16_t>(i * 2654435761u >> 8));
  }
  const buffer* cache = c.input("k_cache");
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->at, (extent{{3, 4, 584}, {2400, 584, 1}, 7}));
  ASSERT_EQ(cache->bytes.size(), 7300u);
  for (std::size_t i = 0; i < cache->bytes.size(); ++i) {
    ASSERT_EQ(cache->bytes[i], static_cast<std::byte>(i * 7 % 251));
  }
  EXPECT_EQ(c.expected[0].bytes, cache->bytes);
  ASSERT_EQ(c.actual.size(), 1u);
  EXPECT_EQ(c.actual[0].bytes, cache->bytes);
  EXPECT_EQ(c.actual[0].at, cache->at);
}

// A filter of h5py's own, which no HDF5 library has.
TEST(h5py, lzf_is_refused) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  ASSERT_EQ(python("h5py_write.py", path + " lzf"), 0);
  EXPECT_EQ(error_of_reading(path),
            path +
                ": /quantize_and_insert_k_cache/from_python/inputs/k: is compressed with filter "
                "32000, which this HDF5 library lacks: use gzip");
}

// The script exits with 1 where what it sees is not the sample suite.
TEST(h5py, reads_our_files) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_vectors(path, sample_suite());
  EXPECT_EQ(python("h5py_read.py", path), 0);
}

}  // namespace
}  // namespace kvcts::testing_tools
