#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "vectors/tests/hdf5_edit.h"
#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

std::vector<buffer> sorted(std::vector<buffer> buffers) {
  std::sort(buffers.begin(), buffers.end(),
            [](const buffer& a, const buffer& b) { return a.name < b.name; });
  return buffers;
}

void expect_same(const std::vector<buffer>& unsorted, const std::vector<buffer>& read) {
  const std::vector<buffer> wanted = sorted(unsorted);
  ASSERT_EQ(wanted.size(), read.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(wanted[i].name, read[i].name);
    EXPECT_EQ(wanted[i].type, read[i].type) << read[i].name;
    EXPECT_EQ(wanted[i].at, read[i].at) << read[i].name;
    EXPECT_EQ(wanted[i].bytes, read[i].bytes) << read[i].name;
  }
}

TEST(write_vectors, what_is_written_is_read) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  suite s = sample_suite();
  s.cases[1].actual = s.cases[1].expected;
  write_vectors(path, s);
  const vector_file file(path);
  EXPECT_EQ(file.info().profile, "nvidia");
  EXPECT_EQ(file.info().producer, "tests");
  EXPECT_EQ(file.info().seed, 0xfedcba9876543210);
  EXPECT_EQ(file.info().others, s.info.others);
  ASSERT_EQ(file.cases().size(), s.cases.size());
  for (std::size_t i = 0; i < s.cases.size(); ++i) {
    const test_case& wanted = s.cases[i];
    EXPECT_EQ(file.cases()[i].kernel, wanted.kernel);
    EXPECT_EQ(file.cases()[i].name, wanted.name);
    const test_case read = file.read(file.cases()[i]);
    EXPECT_EQ(read.kernel, wanted.kernel);
    EXPECT_EQ(read.name, wanted.name);
    EXPECT_EQ(read.flags, wanted.flags);
    EXPECT_EQ(read.attributes, wanted.attributes);
    expect_same(wanted.inputs, read.inputs);
    expect_same(wanted.expected, read.expected);
    expect_same(wanted.actual, read.actual);
    EXPECT_TRUE(read.unusable_actual.empty());
  }
}

TEST(write_vectors, two_writes_are_the_same_bytes) {
  const scratch folder;
  write_vectors(folder.file("a.h5"), sample_suite());
  suite shuffled = sample_suite();
  std::swap(shuffled.cases[0], shuffled.cases[2]);
  std::swap(shuffled.cases[1].inputs[0], shuffled.cases[1].inputs[2]);
  write_vectors(folder.file("b.h5"), shuffled);
  const std::string a = bytes_of_file(folder.file("a.h5"));
  ASSERT_GT(a.size(), 1000u);
  EXPECT_TRUE(a == bytes_of_file(folder.file("b.h5")));
  suite other = sample_suite();
  other.cases[0].inputs[0].bytes[9] ^= std::byte{1};
  write_vectors(folder.file("c.h5"), other);
  EXPECT_FALSE(a == bytes_of_file(folder.file("c.h5")));
}

// Two writes in one second would not show a time.
TEST(write_vectors, objects_carry_no_times) {
  const scratch folder;
  write_vectors(folder.file("a.h5"), sample_suite());
  const std::vector<long> times = object_times(folder.file("a.h5"));
  EXPECT_GT(times.size(), 40u);
  EXPECT_EQ(std::count(times.begin(), times.end(), 0), static_cast<long>(times.size()));
}

TEST(write_vectors, equal_datasets_are_one_object) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_vectors(path, sample_suite());
  const std::string kernel = "/quantize_and_insert_k_cache/";
  EXPECT_EQ(object_token(path, kernel + "n5/inputs/k"),
            object_token(path, kernel + "n5_skipped/inputs/k"));
  EXPECT_EQ(object_token(path, kernel + "n5_skipped/inputs/k_cache"),
            object_token(path, kernel + "n5_skipped/expected/k_cache"));
  EXPECT_NE(object_token(path, kernel + "n5/inputs/k_cache"),
            object_token(path, kernel + "n5/expected/k_cache"));
}

// Equal bytes under another dtype, shape or extent are another tensor.
TEST(write_vectors, equal_bytes_of_another_shape_stay_apart) {
  const scratch folder;
  suite s;
  test_case c;
  c.kernel = "some_kernel";
  c.name = "one";
  c.inputs = {filled("a", dtype::u8, dense({4, 6}), 1), filled("b", dtype::u8, dense({6, 4}), 1),
              filled("c", dtype::f8e4m3fn, dense({4, 6}), 1),
              filled("d", dtype::u8, {{4, 3}, {6, 1}, 0}, 1, 3),
              filled("e", dtype::u8, {{4, 3}, {6, 1}, 1}, 1, 2)};
  s.cases = {c};
  write_vectors(folder.file("a.h5"), s);
  const vector_file file(folder.file("a.h5"));
  expect_same(c.inputs, file.decode(file.cases()[0]).inputs);
}

TEST(write_vectors, large_storage_is_compressed_and_read_back) {
  const scratch folder;
  suite s;
  test_case c;
  c.kernel = "some_kernel";
  c.name = "large";
  c.inputs = {filled("a", dtype::f32, dense({3, 700, 401}), 7),
              filled("b", dtype::u8, {{2, 3000000}, {3000100, 1}, 50}, 8, 9),
              filled("empty", dtype::i32, dense({0, 130}), 9),
              filled("one", dtype::f32, dense({1}), 10),
              filled("scalar", dtype::i64, dense({}), 3)};
  c.inputs.push_back({"zeros", dtype::u8, dense({5000000}), std::vector<std::byte>(5000000)});
  s.cases = {c};
  write_vectors(folder.file("a.h5"), s);
  EXPECT_LT(std::filesystem::file_size(folder.file("a.h5")), 10500000u);
  const vector_file file(folder.file("a.h5"));
  expect_same(c.inputs, file.decode(file.cases()[0]).inputs);
}

TEST(write_vectors, replaces_a_file) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_bytes(path, "old");
  write_vectors(path, sample_suite());
  EXPECT_EQ(error_of_reading(path), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
}

std::string error_of_writing(const std::string& path, const suite& s) {
  try {
    write_vectors(path, s);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

TEST(write_vectors, a_directory_that_cannot_be_written_is_bad_input) {
  const scratch folder;
  const std::string nowhere = folder.file("no/such/folder/a.h5");
  EXPECT_EQ(error_of_writing(nowhere, sample_suite()),
            nowhere +
                ": cannot be written: No such file or directory: choose a directory with room that "
                "you may write to");
  write_bytes(folder.file("plain"), "x");
  EXPECT_NE(error_of_writing(folder.file("plain/a.h5"), sample_suite()).find("Not a directory"),
            std::string::npos);
  EXPECT_NE(error_of_writing(folder.file(""), sample_suite()), "");
  EXPECT_NE(error_of_writing("/dev/null", sample_suite()), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"plain"});
}

TEST(write_vectors, a_failure_leaves_the_old_file_and_no_temporary) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_bytes(path, "old");
  suite s = sample_suite();
  s.cases[2].inputs[0].bytes.resize(8);  // shorter than its extent
  EXPECT_THROW(write_vectors(path, s), std::logic_error);
  EXPECT_EQ(bytes_of_file(path), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
  {
    vector_writer unfinished(path, s.info);
    unfinished.add(s.cases[0]);
  }
  EXPECT_EQ(bytes_of_file(path), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
}

TEST(vector_writer, cases_come_in_order) {
  const scratch folder;
  const suite s = sample_suite();
  vector_writer writer(folder.file("a.h5"), s.info);
  writer.add(s.cases[1]);
  EXPECT_THROW(writer.add(s.cases[1]), std::logic_error);
  EXPECT_THROW(writer.add(s.cases[0]), std::logic_error);
  writer.add(s.cases[2]);
  writer.finish();
  EXPECT_EQ(vector_file(folder.file("a.h5")).cases().size(), 2u);
}

TEST(for_each_case, gives_the_wanted_cases_in_order) {
  const scratch folder;
  write_vectors(folder.file("a.h5"), sample_suite());
  const vector_file file(folder.file("a.h5"));
  std::string seen;
  for_each_case(
      file, [](const vector_file::entry& e) { return e.kernel != "mxfp4_q_quant"; },
      [&](const test_case& c) { seen += c.name + ";"; });
  EXPECT_EQ(seen, "n5;n5_skipped;");
  seen.clear();
  for_each_case(file, nullptr, [&](const test_case& c) { seen += c.name + ";"; });
  EXPECT_EQ(seen, "t3_h2_p4;n5;n5_skipped;");
}

}  // namespace
}  // namespace kvcts::testing_tools
