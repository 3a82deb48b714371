// Files as other programs write them, within the schema.
#include <gtest/gtest.h>

#include <algorithm>

#include "vectors/tests/hdf5_edit.h"
#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

const std::string q_case = "/mxfp4_q_quant/t3_h2_p4";
const std::string insert = "/quantize_and_insert_k_cache/n5";

class storage_form : public ::testing::Test {
 protected:
  storage_form() : path(folder.file("a.h5")), wanted(sample_suite()) {
    write_vectors(path, wanted);
    digest = digest_of(vector_file(path));
  }
  void expect_unchanged() {
    EXPECT_EQ(error_of_reading(path), "");
    EXPECT_EQ(digest_of(vector_file(path)), digest);
  }
  const scratch folder;
  const std::string path;
  suite wanted;
  std::string digest;
};

TEST_F(storage_form, variable_length_strings) {
  {
    editor edit(path);
    edit.variable_text("/", "schema", "kvcts-vectors");
    edit.variable_text("/", "profile", "nvidia");
    edit.variable_text("/", "producer", "tests");
    edit.variable_texts(insert, "flags", {"StridedPage", "NegativeSlot"});
    edit.variable_text(insert + "/inputs/k", "dtype", "bf16");
  }
  expect_unchanged();
}

TEST_F(storage_form, fixed_strings_of_every_padding) {
  {
    editor edit(path);
    edit.fixed_text("/", "schema", "kvcts-vectors", H5T_STR_SPACEPAD, 40);
    edit.fixed_text("/", "profile", "nvidia", H5T_STR_NULLTERM, 7);
    edit.fixed_text("/", "producer", "tests", H5T_STR_NULLPAD, 5);
    edit.fixed_text(insert + "/inputs/k", "dtype", "bf16", H5T_STR_SPACEPAD, 9);
  }
  expect_unchanged();
}

TEST_F(storage_form, numbers_of_any_width_and_byte_order) {
  {
    editor edit(path);
    edit.attribute("/", "schema_version", std::int64_t{1}, H5T_STD_U8LE);
    edit.attribute(insert, "block_size", std::int64_t{4}, H5T_STD_U16BE);
    edit.attribute(insert, "bytes_per_token", std::int64_t{584}, H5T_STD_I32LE);
    edit.attribute(q_case, "weight_scale", 0.125, H5T_IEEE_F32BE);
    edit.attribute(q_case, "padded_num_heads", std::vector<std::int64_t>{4});
  }
  expect_unchanged();
}

TEST_F(storage_form, booleans_as_h5py_writes_them) {
  {
    editor edit(path);
    const hid_t type = H5Tenum_create(H5T_STD_I8LE);
    std::int8_t value = 0;
    H5Tenum_insert(type, "FALSE", &value);
    value = 1;
    H5Tenum_insert(type, "TRUE", &value);
    value = 0;
    edit.raw_attribute(insert, "use_fnuz", type, type, {}, &value);
    H5Tclose(type);
  }
  expect_unchanged();
}

TEST_F(storage_form, flags_that_are_unknown_missing_empty_or_single) {
  const auto flags_of_q = [&] {
    return vector_file(path).read({"mxfp4_q_quant", "t3_h2_p4"}).flags;
  };
  {
    editor edit(path);
    edit.variable_texts(q_case, "flags", {"NobodyKnowsThis", "Strided"});
  }
  EXPECT_EQ(flags_of_q(), (std::vector<std::string>{"NobodyKnowsThis", "Strided"}));
  {
    editor edit(path);
    edit.fixed_text(q_case, "flags", "Strided");
  }
  EXPECT_EQ(flags_of_q(), std::vector<std::string>{"Strided"});
  {
    // What numpy makes of an empty list.
    editor edit(path);
    edit.raw_attribute(q_case, "flags", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {0}, nullptr);
  }
  EXPECT_TRUE(flags_of_q().empty());
  {
    editor edit(path);
    edit.remove_attribute(q_case, "flags");
  }
  EXPECT_TRUE(flags_of_q().empty());
}

TEST_F(storage_form, more_root_attributes_and_other_groups_of_a_case) {
  {
    editor edit(path);
    edit.variable_text("/", "suite_digest", "abc");
    edit.attribute("/", "numbers", {1, 2, 3});
    edit.attribute("/", "ratio", 0.5);
    const hid_t group =
        H5Gcreate2(edit.file(), (q_case + "/notes").c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
  }
  EXPECT_EQ(error_of_reading(path), "");
  const suite_info info = vector_file(path).info();
  EXPECT_EQ(info.others.at("suite_digest"), attribute_value(std::string("abc")));
  EXPECT_EQ(info.others.at("ratio"), attribute_value(0.5));
  EXPECT_EQ(info.others.count("numbers"), 0u);
}

TEST_F(storage_form, big_endian_datasets) {
  const auto swapped = [](std::vector<std::byte> bytes, std::size_t element) {
    for (std::size_t i = 0; i < bytes.size(); i += element) {
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                   bytes.begin() + static_cast<std::ptrdiff_t>(i + element));
    }
    return bytes;
  };
  // A signaling NaN must keep its bits.
  buffer& weights = find(wanted.cases[0].inputs, "index_weights");
  store<std::uint32_t>(weights.bytes.data() + 4, 0x7fa12345);
  write_vectors(path, wanted);
  digest = digest_of(wanted);
  {
    editor edit(path);
    edit.dataset(q_case + "/inputs/index_weights", H5T_IEEE_F32BE, {3, 2},
                 swapped(weights.bytes, 4).data());
    edit.fixed_text(q_case + "/inputs/index_weights", "dtype", "f32");
    edit.dataset(q_case + "/expected/q_scale", H5T_STD_I32BE, {3, 4},
                 swapped(find(wanted.cases[0].expected, "q_scale").bytes, 4).data());
    edit.fixed_text(q_case + "/expected/q_scale", "dtype", "i32");
    edit.dataset(insert + "/inputs/k", H5T_STD_U16BE, {5, 512},
                 swapped(find(wanted.cases[1].inputs, "k").bytes, 2).data());
    edit.fixed_text(insert + "/inputs/k", "dtype", "bf16");
  }
  expect_unchanged();
}

// The sign of the stored integers says nothing about bits.
TEST_F(storage_form, integers_of_the_other_sign) {
  {
    editor edit(path);
    edit.dataset(insert + "/inputs/k", H5T_STD_I16LE, {5, 512},
                 find(wanted.cases[1].inputs, "k").bytes.data());
    edit.fixed_text(insert + "/inputs/k", "dtype", "bf16");
    edit.dataset(q_case + "/expected/q_scale", H5T_STD_U32LE, {3, 4},
                 find(wanted.cases[0].expected, "q_scale").bytes.data());
    edit.fixed_text(q_case + "/expected/q_scale", "dtype", "i32");
    edit.dataset(q_case + "/expected/q_packed", H5T_STD_I8LE, {3, 4, 64},
                 find(wanted.cases[0].expected, "q_packed").bytes.data());
    edit.fixed_text(q_case + "/expected/q_packed", "dtype", "u8");
  }
  expect_unchanged();
}

TEST_F(storage_form, names_of_the_same_stored_bytes) {
  {
    editor edit(path);
    edit.fixed_text(q_case + "/expected/q_packed", "dtype", "e2m1x2");
    edit.fixed_text(insert + "/inputs/k_cache", "dtype", "ue8m0");
    edit.fixed_text(insert + "/expected/k_cache", "dtype", "e2m1x2");
  }
  expect_unchanged();
}

TEST_F(storage_form, page_view_that_is_dense_in_its_shape) {
  test_case c = wanted.cases[2];
  for (buffer* b : {&find(c.inputs, "k_cache"), &c.expected[0]}) {
    *b = filled("k_cache", dtype::u8, dense({2, 4, 584}), 40);
  }
  wanted.cases[2] = c;
  write_vectors(path, wanted);
  digest = digest_of(wanted);
  {
    editor edit(path);
    for (const std::string name : {"inputs", "expected"}) {
      const std::string object = insert + "_skipped/" + name + "/k_cache";
      edit.dataset(object, H5T_STD_U8LE, {2, 4, 584}, c.expected[0].bytes.data());
      edit.fixed_text(object, "dtype", "u8");
    }
  }
  expect_unchanged();
}

TEST_F(storage_form, filled_in_by_a_user_without_attributes) {
  suite s = wanted;
  const buffer& cache = s.cases[1].expected[0];
  const buffer& packed = find(s.cases[0].expected, "q_packed");
  {
    editor edit(path);
    for (const std::string& name : {q_case, insert}) {
      const hid_t group = H5Gcreate2(edit.file(), (name + "/actual").c_str(), H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT);
      H5Gclose(group);
    }
    edit.dataset(insert + "/actual/k_cache", H5T_STD_U8LE, {cache.bytes.size()},
                 cache.bytes.data());
    edit.dataset(q_case + "/actual/q_packed", H5T_STD_U8LE, {3, 4, 64}, packed.bytes.data());
    // Not conforming, but no bad file either.
    edit.dataset(q_case + "/actual/q_scale", H5T_IEEE_F64LE, {3, 4}, nullptr);
    edit.dataset(q_case + "/actual/weights", H5T_IEEE_F32LE, {12}, nullptr);
    edit.fixed_text(q_case + "/actual/weights", "dtype", "f33");
    edit.dataset(q_case + "/actual/surplus", H5T_IEEE_F32LE, {12}, nullptr);
  }
  EXPECT_EQ(error_of_reading(path), "");
  const vector_file file(path);
  const test_case inserted = file.read(file.cases()[1]);
  ASSERT_EQ(inserted.actual.size(), 1u);
  EXPECT_EQ(inserted.actual[0].type, dtype::u8);
  EXPECT_EQ(inserted.actual[0].at, cache.at);
  EXPECT_EQ(inserted.actual[0].bytes, cache.bytes);
  const test_case q = file.read(file.cases()[0]);
  ASSERT_EQ(q.actual.size(), 1u);
  EXPECT_EQ(q.actual[0].at, packed.at);
  EXPECT_EQ(q.actual[0].bytes, packed.bytes);
  ASSERT_EQ(q.unusable_actual.size(), 3u);
  EXPECT_EQ(q.unusable_actual[0].name, "q_scale");
  EXPECT_EQ(q.unusable_actual[0].why,
            "is stored as 8-byte float, and dtype i32 is stored as i32: store it so");
  EXPECT_EQ(q.unusable_actual[1].name, "surplus");
  EXPECT_EQ(q.unusable_actual[2].name, "weights");
}

// Ranges begin and end anywhere in rows and planes of what is stored in shape, chunked or not.
TEST_F(storage_form, ranges_of_a_tensor_are_its_bytes) {
  suite s;
  s.cases.push_back(wanted.cases[0]);
  s.cases[0].inputs = {filled("a", dtype::u8, dense({3, 4, 5, 6}), 1),
                       filled("b", dtype::bf16, dense({7, 11, 60}), 2),
                       filled("c", dtype::i64, {{3, 4}, {7, 1}, 5}, 3, 2),
                       filled("d", dtype::f32, dense({}), 4)};
  write_vectors(path, s);
  const vector_file file(path);
  const case_outline outline = file.outline(file.cases()[0]);
  ASSERT_EQ(outline.inputs.size(), 4u);
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const file_tensor& t = outline.inputs[i];
    const std::vector<std::byte>& whole = s.cases[0].inputs[i].bytes;
    ASSERT_EQ(t.bytes(), whole.size());
    const std::uint64_t element = size_of(t.type()), elements = whole.size() / element;
    // Steps that are primes reach all kinds of beginnings and ends.
    for (std::uint64_t first = 0; first<elements; first += elements> 400 ? 37 : 1) {
      for (std::uint64_t n = 1; first + n <= elements; n += elements > 400 ? 41 : 1, ++ranges) {
        std::vector<std::byte> got(n * element);
        t.read({first * element, n * element}, got.data());
        ASSERT_TRUE(std::equal(got.begin(), got.end(), whole.begin() + first * element))
            << t.name() << " from " << first << ", " << n;
      }
    }
  }
  EXPECT_GT(ranges, 60000u);
}

}  // namespace
}  // namespace kvcts::testing_tools
