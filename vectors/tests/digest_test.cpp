#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "vectors/tests/hdf5_edit.h"
#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

// Computed apart, in Python from docs/vectors.md. A change of the definition breaks every manifest.
TEST(digest, definition_does_not_change) {
  test_case c;
  c.kernel = "kernel";
  c.name = "case";
  c.flags = {"Zebra", "Ant"};
  c.attributes = {{"eps", 1.5}, {"n", std::int64_t{-3}}, {"mode", std::string("q")}};
  c.inputs = {filled("x", dtype::bf16, {{2, 3}, {4, 1}, 1}, 5, 2)};
  c.expected = {filled("y", dtype::u8, dense({4}), 6)};
  EXPECT_EQ(digest_of(c), "f67f761900d202894781e7285b5e8d33d444cad24396d6dd2e39d5583c5e3fab");
  suite s;
  s.cases = {c};
  EXPECT_EQ(digest_of(s), "b967e4bff77ea75c7b4f5052bac99c4a1786e152831ee077b57144fe8573e319");
}

TEST(digest, of_a_file_is_that_of_its_suite) {
  const scratch folder;
  const suite s = sample_suite();
  write_vectors(folder.file("a.h5"), s);
  const vector_file file(folder.file("a.h5"));
  EXPECT_EQ(digest_of(file), digest_of(s));
  EXPECT_EQ(digest_of(file.read(file.cases()[0])), digest_of(s.cases[0]));
}

TEST(digest, everything_that_matters_changes_it) {
  const suite s = sample_suite();
  const std::vector<std::function<void(test_case&)>> changes = {
      [](test_case&) {},
      [](test_case& c) { c.kernel += "x"; },
      [](test_case& c) { c.name += "x"; },
      [](test_case& c) { c.flags.pop_back(); },
      [](test_case& c) { c.attributes["block_size"] = std::int64_t{5}; },
      [](test_case& c) { c.attributes["block_size"] = 4.0; },
      [](test_case& c) { c.attributes["block_size"] = std::string("4"); },
      [](test_case& c) { c.attributes.erase("use_fnuz"); },
      [](test_case& c) { c.inputs[0].bytes.back() ^= std::byte{1}; },
      [](test_case& c) { c.inputs[0].name += "x"; },
      [](test_case& c) { c.inputs[0].type = dtype::f32; },
      [](test_case& c) {
        c.inputs[0].at = dense({512, 5});
      },
      [](test_case& c) { c.inputs[1].at.strides[0] += 1; },
      [](test_case& c) { c.inputs[1].at.offset += 1; },
      [](test_case& c) { c.inputs[1].bytes.push_back(std::byte{0}); },
      [](test_case& c) { c.expected[0].bytes[0] ^= std::byte{1}; },
      [](test_case& c) { c.expected.clear(); },
      [](test_case& c) { std::swap(c.inputs, c.expected); }};
  std::set<std::string> seen;
  for (const auto& change : changes) {
    test_case c = s.cases[1];
    change(c);
    EXPECT_TRUE(seen.insert(digest_of(c)).second) << seen.size();
  }
  suite other = s;
  other.info.profile = "ieee";
  EXPECT_NE(digest_of(other), digest_of(s));
  other = s;
  other.cases.pop_back();
  EXPECT_NE(digest_of(other), digest_of(s));
}

TEST(digest, what_does_not_matter_does_not_change_it) {
  const suite s = sample_suite();
  const std::string wanted = digest_of(s);
  suite other = s;
  other.info.producer = "somebody else";
  other.info.others.clear();
  std::swap(other.cases[0], other.cases[2]);
  test_case& c = other.cases[1];
  std::swap(c.inputs[0], c.inputs[1]);
  std::swap(c.flags[0], c.flags[1]);
  c.actual = c.expected;
  find(c.inputs, "k_cache").type = dtype::ue8m0;
  EXPECT_EQ(digest_of(other), wanted);
  // The stride of a dimension of size 1.
  test_case one = s.cases[0];
  one.inputs[1].at = {{1, 6}, {6, 1}, 0};
  test_case same = one;
  same.inputs[1].at.strides[0] = 77;
  EXPECT_EQ(digest_of(one), digest_of(same));
}

// Flat with shape, strides and offset, or in its shape: the same content.
TEST(digest, does_not_depend_on_the_storage_form) {
  const scratch folder;
  const suite s = sample_suite();
  const std::string path = folder.file("a.h5");
  write_vectors(path, s);
  {
    editor edit(path);
    const std::string k = "/quantize_and_insert_k_cache/n5/inputs/k";
    edit.dataset(k, H5T_STD_U16LE, {5 * 512}, s.cases[1].inputs[0].bytes.data());
    edit.variable_text(k, "dtype", "bf16");
    edit.attribute(k, "shape", {5, 512}, H5T_STD_U32BE);
    edit.attribute(k, "strides", {512, 1}, H5T_STD_I16LE);
    edit.attribute(k, "offset", std::int64_t{0}, H5T_STD_I8LE);
  }
  const vector_file file(path);
  EXPECT_EQ(digest_of(file), digest_of(s));
}

}  // namespace
}  // namespace kvcts::testing_tools
