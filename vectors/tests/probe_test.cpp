#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "vectors/tests/hdf5_edit.h"
#include "vectors/tests/sample_suite.h"

namespace kvcts::testing_tools {
namespace {

const std::string captured = std::string(KVCTS_SOURCE_DIR) + "/vectors/captured/";

std::string error_of_probe(const std::string& path) {
  try {
    probe_vectors(path, KVCTS_PROBE_TOOL);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

TEST(probe_vectors, passes_good_files) {
  const scratch folder;
  write_vectors(folder.file("a.h5"), sample_suite());
  EXPECT_EQ(error_of_probe(folder.file("a.h5")), "");
  EXPECT_EQ(error_of_probe(captured + "reduction_trees_h200.h5"), "");
}

TEST(probe_vectors, passes_on_what_the_child_says) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  write_bytes(path, "text");
  EXPECT_EQ(error_of_probe(path),
            path + ": is not an HDF5 file: name a vector file, see docs/vectors.md");
  write_vectors(path, sample_suite());
  {
    editor edit(path);
    edit.remove_attribute("/mxfp4_q_quant/t3_h2_p4/inputs/index_weights", "dtype");
  }
  EXPECT_EQ(error_of_probe(path), path +
                                      ": /mxfp4_q_quant/t3_h2_p4/inputs/index_weights: lacks the "
                                      "attribute dtype: add it, see docs/vectors.md");
}

TEST(probe_vectors, a_crash_is_a_damaged_file) {
  EXPECT_EQ(error_of_probe("crash"),
            "crash is damaged: reading it crashed the HDF5 library (signal 11); write it again");
}

TEST(probe_vectors, a_hang_is_a_damaged_file) {
  ::setenv("KVCTS_PROBE_SECONDS", "1", 1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of_probe("hang"),
            "hang is damaged: reading it took longer than 1 s; write it again "
            "(KVCTS_PROBE_SECONDS allows more)");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  ::setenv("KVCTS_PROBE_SECONDS", "soon", 1);
  EXPECT_EQ(error_of_probe("hang"),
            "KVCTS_PROBE_SECONDS=soon: give whole seconds from 1 to 1000000");
  ::unsetenv("KVCTS_PROBE_SECONDS");
}

TEST(probe_vectors, another_program_by_environment) {
  ::setenv("KVCTS_PROBE_PROGRAM", KVCTS_PROBE_TOOL, 1);
  EXPECT_THROW(probe_vectors("crash"), input_error);
  EXPECT_NO_THROW(probe_vectors(captured + "reduction_trees_h200.h5"));
  ::setenv("KVCTS_PROBE_PROGRAM", "/no/such/program", 1);
  EXPECT_THROW(probe_vectors(captured + "reduction_trees_h200.h5"), input_error);
  ::unsetenv("KVCTS_PROBE_PROGRAM");
}

// A program that answers otherwise is no verdict that the file is good.
TEST(probe_vectors, another_exit_status_is_no_pass) {
  EXPECT_THROW(probe_vectors("x", "/bin/false"), input_error);
}

struct counts {
  int clean = 0, refused = 0, crashed = 0;
};

// Flips, overwrites and cuts `whole`, and probes each result: nothing but a clean read or an
// input_error of one line may come of it.
counts mutate(const std::string& whole, const std::string& path, int mutations) {
  counts seen;
  std::uint32_t state = 2463534242u;
  const auto random = [&] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  };
  for (int i = 0; i < mutations; ++i) {
    std::string bytes = whole;
    const std::uint32_t kind = random() % 8;
    if (kind == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      const std::uint32_t edits = 1 + random() % (kind == 1 ? 64 : 4);
      for (std::uint32_t n = 0; n < edits; ++n) {
        char& byte = bytes[random() % bytes.size()];
        if (kind < 5) {
          byte = static_cast<char>(byte ^ (1 << random() % 8));
        } else {
          byte = static_cast<char>(kind == 5 ? 0xff : random());
        }
      }
    }
    write_bytes(path, bytes);
    const std::string error = error_of_probe(path);
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_TRUE(error.empty() || error.find(path) == 0) << error;
    seen.clean += error.empty();
    seen.refused += !error.empty();
    seen.crashed += error.find("crashed") != std::string::npos;
  }
  return seen;
}

TEST(probe_vectors, three_hundred_damaged_files_end_clean_or_refused) {
  const scratch folder;
  const std::string path = folder.file("a.h5");
  // Small datasets only: most of the file is then HDF5's own structure.
  suite s = sample_suite();
  s.cases.erase(s.cases.begin() + 1, s.cases.end());
  for (buffer& b : s.cases[0].inputs) {
    b = filled(b.name, b.type, dense({3, 2}), 1);
  }
  write_vectors(path, s);
  counts seen = mutate(bytes_of_file(path), path, 150);
  // The older format without checksums, and variable-length strings.
  write_vectors(path, s);
  const std::string old = folder.file("old.h5");
  {
    const hid_t from = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t to = H5Fcreate(old.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(H5Ocopy(from, "/mxfp4_q_quant", to, "/mxfp4_q_quant", H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Fclose(to);
    H5Fclose(from);
    editor edit(old);
    edit.variable_text("/", "schema", "kvcts-vectors");
    edit.attribute("/", "schema_version", std::int64_t{1});
    edit.variable_text("/", "profile", "nvidia");
    edit.variable_texts("/mxfp4_q_quant/t3_h2_p4", "flags", {"One", "Two", "Three"});
  }
  EXPECT_EQ(error_of_probe(old), "");
  const counts also = mutate(bytes_of_file(old), old, 150);
  seen.clean += also.clean;
  seen.refused += also.refused;
  seen.crashed += also.crashed;
  RecordProperty("clean", seen.clean);
  RecordProperty("refused", seen.refused);
  RecordProperty("crashed", seen.crashed);
  EXPECT_GT(seen.clean, 10);
  EXPECT_GT(seen.refused, 50);
}

}  // namespace
}  // namespace kvcts::testing_tools
