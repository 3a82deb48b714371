// Bad files: one line that names the file, the object and how to mend it.
#include <gtest/gtest.h>

#include <functional>

#include "vectors/reduction_trees.h"
#include "vectors/tests/hdf5_edit.h"
#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

const std::string q_case = "/mxfp4_q_quant/t3_h2_p4";
const std::string insert = "/quantize_and_insert_k_cache/n5";

void put(editor& edit, const std::string& object, const std::string& type_name, hid_t type,
         const std::vector<hsize_t>& shape) {
  edit.dataset(object, type, shape, nullptr);
  edit.fixed_text(object, "dtype", type_name);
}

void flat(editor& edit, const std::string& object, const std::vector<std::int64_t>& shape,
          const std::vector<std::int64_t>& strides, std::int64_t offset) {
  edit.attribute(object, "shape", shape);
  edit.attribute(object, "strides", strides);
  edit.attribute(object, "offset", offset);
}

struct bad_file {
  const char* name;
  // The line behind "FILE: "; where it ends in '*', its beginning: the rest is the contract's text.
  const char* message;
  std::function<void(editor&)> spoil;
};

void PrintTo(const bad_file& bad, std::ostream* out) { *out << bad.name; }

class bad_vector_file : public ::testing::TestWithParam<bad_file> {};

TEST_P(bad_vector_file, is_refused_in_one_line) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_vectors(path, sample_suite());
  ASSERT_EQ(error_of_reading(path), "");
  {
    editor edit(path);
    GetParam().spoil(edit);
  }
  const std::string error = error_of_reading(path);
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  std::string wanted = path + ": " + GetParam().message;
  if (wanted.back() == '*') {
    wanted.pop_back();
    EXPECT_EQ(error.substr(0, wanted.size()), wanted);
    EXPECT_GT(error.size(), wanted.size());
  } else {
    EXPECT_EQ(error, wanted);
  }
}

const bad_file bad_files[] = {
    {"no_schema",
     "lacks the root attribute schema: set it to \"kvcts-vectors\", see docs/vectors.md",
     [](editor& e) { e.remove_attribute("/", "schema"); }},
    {"other_schema",
     "has schema \"else\\x0awhere\", not \"kvcts-vectors\": name a vector file, see "
     "docs/vectors.md",
     [](editor& e) { e.fixed_text("/", "schema", "else\nwhere"); }},
    {"schema_is_a_number", "attribute schema is a number: store text",
     [](editor& e) { e.attribute("/", "schema", std::int64_t{1}); }},
    {"wrong_schema_version",
     "has schema_version 2, and this program reads 1: write it again as version 1",
     [](editor& e) { e.attribute("/", "schema_version", std::int64_t{2}); }},
    {"schema_version_is_text",
     "attribute schema_version is not an integer of 64 bits: store an integer",
     [](editor& e) { e.fixed_text("/", "schema_version", "1"); }},
    {"no_schema_version", "lacks the root attribute schema_version: set it to 1",
     [](editor& e) { e.remove_attribute("/", "schema_version"); }},
    {"no_profile", "lacks the root attribute profile: set it to \"nvidia\" or \"ieee\"",
     [](editor& e) { e.remove_attribute("/", "profile"); }},
    {"other_profile", "has profile \"amd\": set it to \"nvidia\" or \"ieee\"",
     [](editor& e) { e.fixed_text("/", "profile", "amd"); }},
    {"seed_is_text", "attribute seed is not an unsigned integer of 64 bits: store a u64",
     [](editor& e) { e.fixed_text("/", "seed", "12x"); }},
    {"root_dataset", "/table: is a dataset where the schema has a group: see docs/vectors.md",
     [](editor& e) { put(e, "/table", "u8", H5T_STD_U8LE, {4}); }},
    {"case_is_a_dataset",
     "/mxfp4_q_quant/table: is a dataset where the schema has a group: see docs/vectors.md",
     [](editor& e) { put(e, "/mxfp4_q_quant/table", "u8", H5T_STD_U8LE, {4}); }},
    {"argument_is_a_group",
     "/mxfp4_q_quant/t3_h2_p4/inputs/extra: is a group where the schema has a dataset: see "
     "docs/vectors.md",
     [](editor& e) {
       H5Gclose(H5Gcreate2(e.file(), (q_case + "/inputs/extra").c_str(), H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT));
     }},
    {"unknown_kernel", "/no_such_kernel/c: unknown kernel 'no_such_kernel': the kernels are *",
     [](editor& e) {
       H5Gclose(H5Gcreate2(e.file(), "/no_such_kernel", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
       H5Gclose(H5Gcreate2(e.file(), "/no_such_kernel/c", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
     }},
    {"lacks_inputs",
     "/mxfp4_q_quant/t3_h2_p4/inputs: is missing or empty: store what the kernel reads",
     [](editor& e) { e.remove(q_case + "/inputs"); }},
    {"lacks_an_input", "/mxfp4_q_quant/t3_h2_p4/inputs/index_q: is missing*",
     [](editor& e) { e.remove(q_case + "/inputs/index_q"); }},
    {"lacks_an_output", "/mxfp4_q_quant/t3_h2_p4/expected/q_scale: is missing*",
     [](editor& e) { e.remove(q_case + "/expected/q_scale"); }},
    {"lacks_an_updated_argument",
     "/quantize_and_insert_k_cache/n5/expected/k_cache: is missing: store the whole final content "
     "of every output and updated argument",
     [](editor& e) { e.remove(insert + "/expected/k_cache"); }},
    {"lacks_expected",
     "/quantize_and_insert_k_cache/n5/expected/k_cache: is missing: store the whole final content "
     "of every output and updated argument",
     [](editor& e) { e.remove(insert + "/expected"); }},
    {"surplus_input",
     "/mxfp4_q_quant/t3_h2_p4/inputs/q_packed: is not an input of mxfp4_q_quant: leave it out; "
     "`kvcts describe mxfp4_q_quant` lists them",
     [](editor& e) {
       put(e, q_case + "/inputs/q_packed", "u8", H5T_STD_U8LE, {3, 4, 64});
     }},
    {"surplus_output",
     "/mxfp4_q_quant/t3_h2_p4/expected/index_q: is not an output of this call of mxfp4_q_quant: "
     "leave it out; `kvcts describe mxfp4_q_quant` lists them",
     [](editor& e) { put(e, q_case + "/expected/index_q", "u8", H5T_STD_U8LE, {4}); }},
    {"lacks_an_attribute", "/mxfp4_q_quant/t3_h2_p4: weight_scale: is missing*",
     [](editor& e) { e.remove_attribute(q_case, "weight_scale"); }},
    {"attribute_is_a_list",
     "/mxfp4_q_quant/t3_h2_p4: attribute weight_scale is 2 elements of 8-byte integer: store a "
     "single integer, real or text",
     [](editor& e) {
       e.attribute(q_case, "weight_scale", {1, 2});
     }},
    {"attribute_is_text", "/mxfp4_q_quant/t3_h2_p4: padded_num_heads: is 'many'*",
     [](editor& e) { e.fixed_text(q_case, "padded_num_heads", "many"); }},
    {"unknown_attribute", "/mxfp4_q_quant/t3_h2_p4: eps: is no attribute*",
     [](editor& e) { e.attribute(q_case, "eps", 1e-6); }},
    {"lacks_dtype",
     "/mxfp4_q_quant/t3_h2_p4/inputs/index_weights: lacks the attribute dtype: add it, see "
     "docs/vectors.md",
     [](editor& e) { e.remove_attribute(q_case + "/inputs/index_weights", "dtype"); }},
    {"unknown_dtype",
     "/mxfp4_q_quant/t3_h2_p4/inputs/index_weights: dtype \"f16\" is unknown: use bf16, f32, "
     "f8e4m3fn, f8e4m3fnuz, ue8m0, e2m1x2, u8, i32, i64 or bool",
     [](editor& e) { e.fixed_text(q_case + "/inputs/index_weights", "dtype", "f16"); }},
    {"wrong_dtype", "/quantize_and_insert_k_cache/n5/inputs/slot_mapping: dtype is i32*",
     [](editor& e) { put(e, insert + "/inputs/slot_mapping", "i32", H5T_STD_I32LE, {5}); }},
    {"wrong_dtype_of_an_output", "/mxfp4_q_quant/t3_h2_p4/expected/weights: dtype is bf16*",
     [](editor& e) {
       put(e, q_case + "/expected/weights", "bf16", H5T_STD_U16LE, {3, 4});
     }},
    {"stored_as_another_type",
     "/mxfp4_q_quant/t3_h2_p4/expected/weights: is stored as 8-byte float, and dtype f32 is stored "
     "as f32: store it so",
     [](editor& e) {
       put(e, q_case + "/expected/weights", "f32", H5T_IEEE_F64LE, {3, 4});
     }},
    {"stored_as_half_floats",
     "/quantize_and_insert_k_cache/n5/inputs/k: is stored as text, and dtype bf16 is stored as "
     "u16: "
     "store it so",
     [](editor& e) {
       const hid_t text = H5Tcopy(H5T_C_S1);
       H5Tset_size(text, 2);
       put(e, insert + "/inputs/k", "bf16", text, {5, 512});
       H5Tclose(text);
     }},
    {"wrong_shape", "/quantize_and_insert_k_cache/n5/inputs/k: dimension 1 (dim) is 511*",
     [](editor& e) {
       put(e, insert + "/inputs/k", "bf16", H5T_STD_U16LE, {5, 511});
     }},
    {"wrong_shape_of_an_output",
     "/mxfp4_q_quant/t3_h2_p4/expected/q_packed: dimension 1 (head) is 5*",
     [](editor& e) {
       put(e, q_case + "/expected/q_packed", "u8", H5T_STD_U8LE, {3, 5, 64});
     }},
    {"updated_argument_of_another_extent",
     "/quantize_and_insert_k_cache/n5/expected/k_cache: has shape [2, 4, 584], strides [2400, 584, "
     "1], offset 15 in 4784 bytes, and shape [2, 4, 584], strides [2400, 584, 1], offset 16 in "
     "4784 "
     "bytes in inputs: store both alike",
     [](editor& e) { e.attribute(insert + "/expected/k_cache", "offset", std::int64_t{15}); }},
    {"updated_argument_of_other_storage",
     "/quantize_and_insert_k_cache/n5/expected/k_cache: has shape [2, 4, 584], strides [2400, 584, "
     "1], offset 16 in 4783 bytes, and shape [2, 4, 584], strides [2400, 584, 1], offset 16 in "
     "4784 "
     "bytes in inputs: store both alike",
     [](editor& e) {
       put(e, insert + "/expected/k_cache", "u8", H5T_STD_U8LE, {4783});
       flat(e, insert + "/expected/k_cache", {2, 4, 584}, {2400, 584, 1}, 16);
     }},
    {"strides_leave_the_storage",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: shape [2, 4, 584], strides [2433, 584, 1] "
     "and "
     "offset 16 leave the storage of 4784 elements: store all of it",
     [](editor& e) {
       e.attribute(insert + "/inputs/k_cache", "strides", {2433, 584, 1});
     }},
    {"offset_leaves_the_storage",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: shape [2, 4, 584], strides [2400, 584, 1] "
     "and "
     "offset 49 leave the storage of 4784 elements: store all of it",
     [](editor& e) { e.attribute(insert + "/inputs/k_cache", "offset", std::int64_t{49}); }},
    {"extent_past_64_bits",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: shape [4611686018427387905, 4, 584], strides "
     "[4611686018427387905, 584, 1] and offset 16 leave the storage of 4784 elements: store all of "
     "it",
     [](editor& e) {
       const std::int64_t big = (std::int64_t{1} << 62) + 1;
       flat(e, insert + "/inputs/k_cache", {big, 4, 584}, {big, 584, 1}, 16);
     }},
    {"shape_past_64_bits_over_stride_zero",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: shape [4611686018427387904, 4, 584], strides "
     "[0, 584, 1] and offset 16 leave the storage of 4784 elements: store all of it",
     [](editor& e) {
       flat(e, insert + "/inputs/k_cache", {std::int64_t{1} << 62, 4, 584}, {0, 584, 1}, 16);
     }},
    {"negative_stride",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: has shape [2, 4, 584], strides [-2400, 584, "
     "1] and offset 16: none may be negative",
     [](editor& e) {
       e.attribute(insert + "/inputs/k_cache", "strides", {-2400, 584, 1});
     }},
    {"negative_shape",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: has shape [-2, 4, 584], strides [2400, 584, "
     "1] and offset 16: none may be negative",
     [](editor& e) {
       e.attribute(insert + "/inputs/k_cache", "shape", {-2, 4, 584});
     }},
    {"unsigned_stride_past_63_bits",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: attribute strides has a value past 2^63",
     [](editor& e) {
       const std::uint64_t strides[] = {~std::uint64_t{0}, 584, 1};
       e.raw_attribute(insert + "/inputs/k_cache", "strides", H5T_STD_U64LE, H5T_NATIVE_UINT64, {3},
                       strides);
     }},
    {"strides_of_another_rank",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: has shape [2, 4, 584] and strides [2400, 1]: "
     "give one stride a dimension",
     [](editor& e) {
       e.attribute(insert + "/inputs/k_cache", "strides", {2400, 1});
     }},
    {"strides_are_reals",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: attribute strides is 8-byte float: store an "
     "array of integers",
     [](editor& e) {
       const double strides[] = {2400, 584, 1};
       e.raw_attribute(insert + "/inputs/k_cache", "strides", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                       {3}, strides);
     }},
    {"lacks_offset",
     "/quantize_and_insert_k_cache/n5/inputs/k_cache: lacks the attribute offset: flat storage has "
     "shape, strides and offset, dense storage none",
     [](editor& e) { e.remove_attribute(insert + "/inputs/k_cache", "offset"); }},
    {"strides_on_more_than_one_dimension",
     "/quantize_and_insert_k_cache/n5/inputs/k: has shape, strides and offset and 2 dimensions: "
     "store flat storage in one dimension",
     [](editor& e) {
       flat(e, insert + "/inputs/k", {5, 512}, {512, 1}, 0);
     }},
    {"no_elements_at_all",
     "/quantize_and_insert_k_cache/n5/inputs/slot_mapping: has no elements and no shape: store an "
     "array",
     [](editor& e) {
       const std::string object = insert + "/inputs/slot_mapping";
       e.remove(object);
       const hid_t space = H5Screate(H5S_NULL);
       H5Dclose(H5Dcreate2(e.file(), object.c_str(), H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT));
       H5Sclose(space);
       e.fixed_text(object, "dtype", "i64");
     }},
    {"slot_past_the_cache",
     "/quantize_and_insert_k_cache/n5/inputs/slot_mapping: slot 8 of token 0 is past the cache*",
     [](editor& e) {
       const std::int64_t slots[] = {8, 0, 0, 0, 0};
       e.dataset(insert + "/inputs/slot_mapping", H5T_STD_I64LE, {5}, slots);
       e.fixed_text(insert + "/inputs/slot_mapping", "dtype", "i64");
     }},
    {"soft_link",
     "/mxfp4_q_quant/t3_h2_p4/inputs/index_weights: is a soft link: store the object itself or a "
     "hard link",
     [](editor& e) {
       const std::string object = q_case + "/inputs/index_weights";
       e.remove(object);
       H5Lcreate_soft("/mxfp4_q_quant/t3_h2_p4/expected/weights", e.file(), object.c_str(),
                      H5P_DEFAULT, H5P_DEFAULT);
     }},
    {"external_link", "/elsewhere: is an external link: store the object itself or a hard link",
     [](editor& e) {
       H5Lcreate_external("other.h5", "/", e.file(), "/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
     }},
    {"external_link_for_expected",
     "/mxfp4_q_quant/t3_h2_p4/expected: is an external link: store the object itself or a hard "
     "link",
     [](editor& e) {
       e.remove(q_case + "/expected");
       H5Lcreate_external("other.h5", "/", e.file(), (q_case + "/expected").c_str(), H5P_DEFAULT,
                          H5P_DEFAULT);
     }},
    {"data_in_another_file",
     "/quantize_and_insert_k_cache/n5/inputs/slot_mapping: keeps its data in another file: store "
     "the data in this file",
     [](editor& e) {
       const std::string object = insert + "/inputs/slot_mapping";
       e.remove(object);
       const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
       H5Pset_external(list, "/etc/passwd", 0, 40);
       const hsize_t size = 5;
       const hid_t space = H5Screate_simple(1, &size, nullptr);
       H5Dclose(H5Dcreate2(e.file(), object.c_str(), H5T_STD_I64LE, space, H5P_DEFAULT, list,
                           H5P_DEFAULT));
       H5Sclose(space);
       H5Pclose(list);
       e.fixed_text(object, "dtype", "i64");
     }},
    {"virtual_dataset",
     "/quantize_and_insert_k_cache/n5/inputs/slot_mapping: is a virtual dataset: store the data "
     "itself",
     [](editor& e) {
       const std::string object = insert + "/inputs/slot_mapping";
       e.remove(object);
       const hsize_t size = 5;
       const hid_t space = H5Screate_simple(1, &size, nullptr);
       const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
       H5Pset_virtual(list, space, "other.h5", "/x", space);
       H5Dclose(H5Dcreate2(e.file(), object.c_str(), H5T_STD_I64LE, space, H5P_DEFAULT, list,
                           H5P_DEFAULT));
       H5Sclose(space);
       H5Pclose(list);
       e.fixed_text(object, "dtype", "i64");
     }},
};

INSTANTIATE_TEST_SUITE_P(all, bad_vector_file, ::testing::ValuesIn(bad_files),
                         [](const auto& info) { return std::string(info.param.name); });

std::string error_of_opening(const std::string& path) {
  try {
    const vector_file file(path);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

TEST(bad_file, that_is_no_hdf5_file) {
  const scratch folder;
  const std::string missing = folder.file("missing.h5");
  EXPECT_EQ(error_of_opening(missing),
            missing + ": cannot be opened: No such file or directory: name an HDF5 file");
  EXPECT_EQ(error_of_opening(folder.file("")),
            folder.file("") + ": is not a regular file: name an HDF5 file");
  const std::string text = folder.file("text.h5");
  const std::string message =
      text + ": is not an HDF5 file: name a vector file, see docs/vectors.md";
  write_bytes(text, "");
  EXPECT_EQ(error_of_opening(text), message);
  write_bytes(text, std::string(100000, 'x'));
  EXPECT_EQ(error_of_opening(text), message);
}

TEST(bad_file, that_is_truncated) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_vectors(path, sample_suite());
  const std::string whole = bytes_of_file(path);
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{100}}) {
    write_bytes(path, whole.substr(0, size));
    const std::string error = error_of_opening(path);
    EXPECT_EQ(error.rfind(path + ": is truncated or damaged HDF5", 0), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

// A dataset that declares terabytes and holds nothing must not take the machine down.
TEST(bad_file, that_declares_more_than_memory_holds) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  const std::string object = insert + "/inputs/slot_mapping";
  write_vectors(path, sample_suite());
  {
    editor edit(path);
    put(edit, object, "i64", H5T_STD_I64LE, {hsize_t{1} << 45});
  }
  std::string error = error_of_reading(path);
  EXPECT_EQ(error.rfind(path + ": " + object + ": declares 281474976710656 bytes, and ", 0), 0u)
      << error;
  {
    editor edit(path);
    put(edit, object, "i64", H5T_STD_I64LE, {hsize_t{1} << 32, hsize_t{1} << 32});
  }
  error = error_of_reading(path);
  EXPECT_EQ(error, path + ": " + object +
                       ": has shape [4294967296, 4294967296], more than 2^63 bytes: the file is "
                       "damaged, write it again");
}

TEST(bad_file, of_the_other_schema) {
  const std::string trees =
      std::string(KVCTS_SOURCE_DIR) + "/vectors/captured/reduction_trees_h200.h5";
  EXPECT_EQ(error_of_opening(trees),
            trees +
                ": has schema \"kvcts-reduction-trees\", not \"kvcts-vectors\": name a vector "
                "file, see docs/vectors.md");
  const scratch folder;
  write_vectors(folder.file("a.h5"), sample_suite());
  try {
    const reduction_tree_file file(folder.file("a.h5"));
    FAIL();
  } catch (const input_error& error) {
    EXPECT_EQ(error.what(), folder.file("a.h5") +
                                ": has schema \"kvcts-vectors\", not \"kvcts-reduction-trees\": "
                                "name such a file, see docs/vectors.md");
  }
  EXPECT_EQ(schema_of(folder.file("a.h5")), "kvcts-vectors");
  EXPECT_EQ(schema_of(trees), "kvcts-reduction-trees");
}

}  // namespace
}  // namespace kvcts::testing_tools
