// The program: exit status, one clear line for bad input, nothing written.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "conformance/tests/tools.h"
#include "reference/contract/contract.h"
#include "vectors/file.h"
#include "vectors/reduction_trees.h"
#include "vectors/tests/hdf5_edit.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using testing_tools::case_named;
using testing_tools::editor;
using testing_tools::input_of;
using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Exit status 2, one line that holds `words`, nothing in `folder`.
void expect_refused(const std::string& arguments, const std::vector<std::string>& words) {
  const scratch folder;
  const program_result r = run_program(arguments, folder.path(""));
  EXPECT_EQ(r.status, 2) << arguments << "\n" << r.out << r.err;
  EXPECT_EQ(lines(r.err), 1u) << arguments << "\n" << r.err;
  EXPECT_TRUE(r.out.empty()) << arguments << "\n" << r.out;
  for (const std::string& word : words) {
    EXPECT_NE(r.err.find(word), std::string::npos) << arguments << ": no '" << word << "' in\n"
                                                   << r.err;
  }
  EXPECT_TRUE(folder.empty()) << arguments;
}

TEST(cli, bench_refuses_before_it_measures) {
  expect_refused("bench --candidate nope", {"unknown candidate 'nope'", "cpu and cuda"});
  expect_refused("bench --kernels nope", {"unknown kernel 'nope'"});
  expect_refused("bench --vs cuda", {"--vs cuda", "'reference', or the path of a library"});
  expect_refused("bench --candidate cuda --vs cpu", {"--vs cpu", "leave --vs out"});
  expect_refused("bench --candidate ./mine.so", {"--candidate cpu --vs ./mine.so", "cuda"});
  expect_refused("bench --vs ./nowhere.so", {"./nowhere.so: no such library"});
  expect_refused("bench --cpu-target sse9", {"'sse9'", "this machine has", "baseline"});
  expect_refused("bench --candidate cuda --cpu-target avx2", {"--cpu-target avx2", "leave"});
  expect_refused("bench --json no/such/folder.json", {"no/such/folder.json", "--json"});
}

TEST(cli, shows_only_reports) {
  expect_refused("report show nope.json", {"nope.json", "cannot be read", "report.json of a run"});
  expect_refused("report show --html --md nope.json", {"--md", "--html", "excludes"});
}

TEST(cli, refuses_unknown_names) {
  const std::string kernels = "mxfp4_q_quant";
  expect_refused("describe nope", {"unknown kernel 'nope'", kernels});
  expect_refused("run --kernels nope --report r", {"unknown kernel 'nope'", kernels});
  expect_refused("run --candidate nope --report r", {"unknown candidate 'nope'", "cpu"});
  expect_refused("run --profile nope --report r", {"unknown profile 'nope'", "ieee"});
  expect_refused("run --level nope --report r", {"unknown level 'nope'", "acceptance"});
  expect_refused("run --level smoke --case nope --report r", {"no case is named 'nope'"});
  expect_refused("vectors generate --kernels nope -o x.h5", {"unknown kernel 'nope'", kernels});
  expect_refused("vectors generate --level nope -o x.h5", {"unknown level"});
  expect_refused("vectors generate --profile nope -o x.h5", {"unknown profile"});
  expect_refused("vectors generate", {"-o FILE"});
  expect_refused("nope", {"unknown command 'nope'", "accept"});
  expect_refused("", {"subcommand"});
  expect_refused("run --threads x", {"threads"});
}

TEST(cli, refuses_numbers_outside_their_range) {
  struct number {
    const char* option;
    std::vector<const char*> wrong;
  };
  for (const number& n : {number{"--seconds", {"0", "0.0009", "-1", "nan", "inf", "1000001", "x"}},
                          number{"--cases", {"0", "-1", "+1", "1e3", "1.5", "1000000000001", "x"}},
                          number{"--seed", {"-1", "1.5", "18446744073709551616", "x"}},
                          number{"--timeout", {"0", "-1", "nan", "1000001", "x"}},
                          number{"--threads", {"-1", "1.5", "4097", "x"}}}) {
    for (const char* value : n.wrong) {
      const std::string argument = std::string(" ") + n.option + "=" + value;
      expect_refused("fuzz --save f" + argument, {n.option, value});
    }
  }
  // The other commands take them by the same rules.
  expect_refused("run --report r --seed 18446744073709551616", {"--seed", "18446744073709551616"});
  expect_refused("run --report r --timeout nan", {"--timeout", "nan"});
  expect_refused("run --report r --repeat 0", {"--repeat", "0"});
}

TEST(cli, refuses_places_that_cannot_be_written) {
  const std::string file = KVCTS_SOURCE_DIR "/CMakeLists.txt";
  expect_refused("run --level smoke --report " + file + "/r", {file});
  expect_refused("run --level smoke --evidence " + file + "/e.json", {file});
  expect_refused("vectors generate --level smoke -o " + file + "/x.h5", {file});
  expect_refused("accept --report " + file + "/r", {file});
  expect_refused("accept --source /nonexistent", {"/nonexistent"});
}

// Files that do not follow the schema or the contract.
class bad_file : public ::testing::Test {
 protected:
  // Every command that reads vector files refuses it.
  void refused(const std::string& path, const std::vector<std::string>& words) {
    expect_refused("vectors check " + path, words);
    expect_refused("run --vectors " + path + " --report r", words);
    expect_refused("verify " + path + " " + path, words);
  }
  void refused(const test_case& c, const std::vector<std::string>& words) {
    suite s;
    s.info.producer = "test";
    s.cases.push_back(c);
    write_vectors(folder_.path("bad.h5"), s);
    refused(folder_.path("bad.h5"), words);
  }

  // A good file, then an edit that the writer refuses to write.
  void edited(const std::function<void(editor&, const std::string&)>& edit) {
    suite s;
    s.cases.push_back(case_named("mxfp4_q_quant", "t7_h3_p3_mixed_strided_wf32_wgap2"));
    write_vectors(folder_.path("edited.h5"), s);
    editor e(folder_.path("edited.h5"));
    edit(e, "/mxfp4_q_quant/" + s.cases[0].name);
  }

  static test_case query() { return case_named("mxfp4_q_quant", "t2_h3_p4_ties"); }
  static test_case insert() {
    return case_named("quantize_and_insert_k_cache",
                      "n14_s11_b3_r584_mixed_gap1168_rows8_guard_warm_neg");
  }
  static void reshape(buffer& b, extent at) {
    b.bytes.assign(static_cast<std::size_t>(reach(at)) * size_of(b.type), canary);
    b.at = std::move(at);
  }

  scratch folder_;
};

TEST_F(bad_file, that_is_none) {
  refused("/nonexistent/a.h5", {"/nonexistent/a.h5"});
  std::ofstream(folder_.path("text.h5")) << "not HDF5 at all\n";
  refused(folder_.path("text.h5"), {"text.h5"});
  suite s;
  s.cases.push_back(query());
  write_vectors(folder_.path("whole.h5"), s);
  fs::resize_file(folder_.path("whole.h5"), fs::file_size(folder_.path("whole.h5")) / 2);
  refused(folder_.path("whole.h5"), {"whole.h5"});
}

TEST_F(bad_file, with_a_head_dim_other_than_128) {
  test_case c = query();
  reshape(input_of(c, "index_q"), dense({2, 3, 64}));
  refused(c, {"index_q", "128"});
}

TEST_F(bad_file, with_fewer_padded_heads_than_heads) {
  test_case c = query();
  c.attributes["padded_num_heads"] = std::int64_t{2};
  refused(c, {"padded_num_heads"});
}

TEST_F(bad_file, with_weights_of_another_shape) {
  test_case c = query();
  reshape(input_of(c, "index_weights"), dense({2, 4}));
  refused(c, {"index_weights"});
}

TEST_F(bad_file, with_a_last_stride_other_than_1) {
  test_case c = query();
  reshape(input_of(c, "index_q"), {{2, 3, 128}, {3 * 256, 256, 2}, 0});
  refused(c, {"index_q", "stride"});
}

TEST_F(bad_file, with_strides_that_leave_the_storage) {
  edited([](editor& e, const std::string& at) {
    e.attribute(at + "/inputs/index_q", "strides", std::vector<std::int64_t>{1000, 144, 1});
  });
  refused(folder_.path("edited.h5"), {"index_q"});
}

TEST_F(bad_file, of_another_schema_version) {
  edited(
      [](editor& e, const std::string&) { e.attribute("/", "schema_version", std::int64_t{2}); });
  refused(folder_.path("edited.h5"), {"schema_version"});
}

TEST_F(bad_file, without_a_dataset) {
  edited([](editor& e, const std::string& at) { e.remove(at + "/expected/q_scale"); });
  refused(folder_.path("edited.h5"), {"q_scale"});
}

TEST_F(bad_file, with_a_wrong_dtype) {
  test_case c = query();
  input_of(c, "index_q").type = dtype::u8;
  input_of(c, "index_q").bytes.resize(2 * 3 * 128);
  refused(c, {"index_q", "bf16"});
}

TEST_F(bad_file, without_an_input) {
  test_case c = query();
  c.inputs.pop_back();
  refused(c, {"index_weights"});
}

TEST_F(bad_file, without_an_attribute) {
  test_case c = query();
  c.attributes.erase("weight_scale");
  refused(c, {"weight_scale"});
}

TEST_F(bad_file, with_expected_of_another_shape) {
  test_case c = query();
  reshape(c.expected[0], dense({2, 5, 64}));
  refused(c, {"q_packed"});
}

TEST_F(bad_file, with_k_that_is_not_512_wide) {
  test_case c = insert();
  reshape(input_of(c, "k"), dense({14, 448}));
  refused(c, {"k", "512"});
}

TEST_F(bad_file, with_more_slots_than_rows) {
  test_case c = insert();
  reshape(input_of(c, "k"), dense({10, 512}));
  refused(c, {"slot_mapping"});
}

TEST_F(bad_file, with_an_unknown_record) {
  test_case c = insert();
  c.attributes["bytes_per_token"] = std::int64_t{656};
  refused(c, {"bytes_per_token", "584"});
}

TEST_F(bad_file, with_block_size_zero) {
  test_case c = insert();
  c.attributes["block_size"] = std::int64_t{0};
  refused(c, {"block_size"});
}

TEST_F(bad_file, with_a_page_stride_smaller_than_the_page) {
  test_case c = insert();
  for (buffer* b : {&input_of(c, "k_cache"), &c.expected[0]}) b->at.strides[0] = 3 * 584 - 8;
  refused(c, {"k_cache", "stride"});
}

TEST_F(bad_file, with_a_slot_past_the_cache) {
  test_case c = insert();
  const buffer& cache = input_of(c, "k_cache");
  store(input_of(c, "slot_mapping").view().element(5), cache.at.shape[0] * 3);
  refused(c, {"slot_mapping"});
}

TEST_F(bad_file, of_another_profile_than_the_run) {
  suite s;
  s.info.profile = "ieee";
  s.cases.push_back(query());
  write_vectors(folder_.path("ieee.h5"), s);
  expect_refused("run --profile nvidia --vectors " + folder_.path("ieee.h5"), {"--profile ieee"});
}

// --- what works

TEST(cli, lists_and_describes) {
  const program_result list = run_program("list");
  EXPECT_EQ(list.status, 0);
  EXPECT_NE(list.out.find("mxfp4_q_quant"), std::string::npos);
  EXPECT_NE(list.out.find("quantize_and_insert_k_cache"), std::string::npos);
  const program_result describe = run_program("describe mxfp4_q_quant");
  EXPECT_EQ(describe.status, 0);
  for (const char* word : {"index_q", "padded_num_heads >= H", "TieToEven"}) {
    EXPECT_NE(describe.out.find(word), std::string::npos) << word;
  }
}

std::string description_of(const std::string& kernel) {
  const program_result r = run_program("describe " + kernel);
  EXPECT_EQ(r.status, 0) << r.err;
  return r.out;
}

// What is asked of contents is said, argument by argument, and nothing is said where nothing is
// asked.
TEST(cli, describes_what_contents_must_be) {
  for (const kernel_contract* c : contracts()) {
    EXPECT_EQ(c->contents.empty(), c->check_indices == nullptr) << c->name;
    const program_result r = run_program("describe " + std::string(c->name));
    EXPECT_EQ(r.out.find("\ncontents\n") != std::string::npos, !c->contents.empty()) << c->name;
    for (const content_rule& rule : c->contents) {
      EXPECT_NE(c->argument(rule.argument), nullptr) << c->name << " " << rule.argument;
      EXPECT_NE(r.out.find(rule.words), std::string::npos) << c->name << " " << rule.words;
    }
  }
  // Every cache with f32 scales inside.
  for (const auto& [kernel, times] : std::map<std::string, int>{{"indexer_k_norm_quant_insert", 1},
                                                                {"indexer_k_norm_rope_store", 1},
                                                                {"mxfp4_fused_prologue", 1},
                                                                {"dsa_fused_prologue", 2},
                                                                {"mxfp4_k_norm_quant_insert", 0}}) {
    int found = 0;
    for (const content_rule& rule : contract_of(kernel).contents) {
      found += rule.words.find("f32 scales lie inside") != std::string_view::npos;
    }
    EXPECT_EQ(found, times) << kernel;
  }
}

TEST(cli, describes_the_sums_of_every_kernel_that_has_some) {
  const std::string mxfp4 = description_of("mxfp4_k_norm_quant_insert");
  for (const char* part : {
           "LayerNorm of the index key: row of D elements of 2 bytes, block next power of two of "
           "D, "
           "warps num_warps\n",
           "D = 128, num_warps = 1\n"
           "      block 128, 32 lanes, 4 consecutive elements a lane, 1 chunk\n"
           "      sums in a lane in increasing order\n"
           "      squares in a lane RN(x1^2), then fma of x0, x2, x3, ...\n"
           "      lanes p[i] + p[i+h], h = 16, 8, 4, 2, 1\n",
           "D = 128, num_warps = 2\n"
           "      block 128, 64 lanes, 2 consecutive elements a lane, 1 chunk\n",
           "D = 128, num_warps = 4\n"
           "      block 128, 128 lanes, 1 consecutive element a lane, 1 chunk\n"
           "      sums in a lane in increasing order\n"
           "      squares join across lanes, fma(x[l], x[l], RN(x[l+h]^2)) in the first step\n"
           "      lanes p[i] + p[i+h], h = 16, 8, 4, 2, 1\n"
           "      warps W[i] + W[i+h], h = 2, 1\n",
       }) {
    EXPECT_NE(mxfp4.find(part), std::string::npos) << part << "is not in\n" << mxfp4;
  }
  // 1536 elements fill a block of 2048 and its lanes twice.
  const std::string prologue = description_of("dsa_fused_prologue");
  EXPECT_NE(prologue.find("Q = 1536\n"
                          "      block 2048, 128 lanes, 8 consecutive elements a lane, 2 chunks of "
                          "1024\n"),
            std::string::npos)
      << prologue;
  // One block for both rows, and 8 warps from 2048 on.
  const std::string both = description_of("fused_q_kv_rmsnorm_quant");
  EXPECT_NE(both.find("RMSNorm of kv"), std::string::npos) << both;
  EXPECT_NE(both.find("K = 512, Q = 1536\n"
                      "      block 2048, 256 lanes, 8 consecutive elements a lane, 1 chunk\n"),
            std::string::npos)
      << both;
  EXPECT_NE(description_of("indexer_k_norm_rope_store").find("RMSNorm of k_pre"),
            std::string::npos);
  EXPECT_NE(
      description_of("fused_save_compress_norm")
          .find("always\n      block 512, 128 lanes, 4 consecutive elements a lane, 1 chunk\n"),
      std::string::npos);
  EXPECT_EQ(description_of("mxfp4_q_quant").find("sums,"), std::string::npos);
}

TEST(cli, runs_reports_and_is_silent_on_standard_error) {
  const scratch folder;
  const program_result r =
      run_program("run --level smoke --kernels 'mxfp4_q*,quantize*' --report out --evidence e.json",
                  folder.path(""));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(r.err.empty()) << r.err;
  EXPECT_NE(r.out.find("verdict: conforms: 33 cases"), std::string::npos) << r.out;
  EXPECT_TRUE(fs::exists(folder.path("out/report.json")));
  EXPECT_TRUE(fs::exists(folder.path("out/junit.xml")));
  // The other forms again, from report.json alone.
  const std::string in = folder.path("");
  for (const auto& [form, name] :
       {std::pair("--html", "report.html"), std::pair("--md", "report.md"),
        std::pair("--junit", "junit.xml")}) {
    const program_result shown =
        run_program(std::string("report show out ") + form + " -o again", in);
    EXPECT_EQ(shown.status, 0) << form << shown.err;
    EXPECT_EQ(std::system(("cmp -s " + in + "/again " + in + "/out/" + name).c_str()), 0) << form;
  }
  EXPECT_NE(run_program("report show out/report.json", in).out.find("verdict: conforms: 33 cases"),
            std::string::npos);
  EXPECT_EQ(run_program("report show out/junit.xml --md", in).status, 2);
  EXPECT_TRUE(fs::exists(folder.path("e.json")));
}

TEST(cli, generates_the_same_file_twice_and_checks_it) {
  const scratch folder;
  const std::string in = folder.path("");
  EXPECT_EQ(run_program("vectors generate --kernels mxfp4_q_quant -o a.h5", in).status, 0);
  EXPECT_EQ(run_program("vectors generate --kernels mxfp4_q_quant -o b.h5", in).status, 0);
  EXPECT_EQ(std::system(("cmp -s " + folder.path("a.h5") + " " + folder.path("b.h5")).c_str()), 0);
  const program_result check = run_program("vectors check a.h5", in);
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_NE(check.out.find("16 cases"), std::string::npos) << check.out;
  EXPECT_NE(run_program("vectors inspect a.h5", in).out.find("t2_h3_p4_ties"), std::string::npos);
  EXPECT_EQ(run_program("run --vectors a.h5 --case t2_h3_p4_ties", in).status, 0);
}

TEST(cli, checks_the_captured_reduction_trees_row_by_row) {
  const std::string captured = KVCTS_SOURCE_DIR "/vectors/captured/reduction_trees_h200.h5";
  const program_result right = run_program("vectors check '" + captured + "'");
  EXPECT_EQ(right.status, 0) << right.err;
  EXPECT_NE(right.out.find("d1024_w4      256 rows"), std::string::npos) << right.out;

  // One bit of one sum.
  const scratch folder;
  const std::string copy = folder.path("trees.h5");
  fs::copy_file(captured, copy);
  {
    std::vector<float> sums(256);
    const reduction_tree_group group = reduction_tree_file(captured).read("d32_w1");
    std::memcpy(sums.data(), group.sum.bytes.data(), sums.size() * sizeof(float));
    sums[7] = -sums[7];
    editor e(copy);
    e.dataset("/d32_w1/sum", H5T_IEEE_F32LE, {sums.size()}, sums.data());
    e.fixed_text("/d32_w1/sum", "dtype", "f32");
  }
  const program_result wrong = run_program("vectors check trees.h5", folder.path(""));
  EXPECT_EQ(wrong.status, 1) << wrong.err;
  EXPECT_NE(wrong.out.find("row 7, sum: expected 0x"), std::string::npos) << wrong.out;
}

TEST(cli, finds_a_wrong_byte_of_a_file_and_prints_the_replay) {
  const scratch folder;
  suite s;
  s.info.producer = "test";
  s.cases.push_back(case_named("mxfp4_q_quant", "t2_h3_p4_ties"));
  s.cases[0].expected[0].bytes[3] ^= std::byte{1};
  write_vectors(folder.path("a.h5"), s);
  const program_result check = run_program("vectors check a.h5", folder.path(""));
  EXPECT_EQ(check.status, 1);
  EXPECT_NE(check.out.find("q_packed: token 0, head 0, dims 6..7: expected"), std::string::npos)
      << check.out;
  const program_result run = run_program("run --vectors a.h5", folder.path(""));
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.out.find("again alone: kvcts run --candidate cpu --vectors 'a.h5' --kernels "
                         "mxfp4_q_quant --case 't2_h3_p4_ties'"),
            std::string::npos)
      << run.out;
}

TEST(cli, verifies_a_filled_copy) {
  const scratch folder;
  suite s;
  s.cases.push_back(case_named("mxfp4_q_quant", "t2_h3_p4_ties"));
  write_vectors(folder.path("suite.h5"), s);
  const auto verify = [&](const suite& filled) {
    write_vectors(folder.path("mine.h5"), filled);
    return run_program("verify suite.h5 mine.h5", folder.path(""));
  };
  EXPECT_EQ(verify(s).status, 1);  // no `actual` at all
  suite filled = s;
  filled.cases[0].actual = filled.cases[0].expected;
  EXPECT_EQ(verify(filled).status, 0);
  suite wrong = filled;
  wrong.cases[0].actual[1].bytes[1] ^= std::byte{1};
  const program_result r = verify(wrong);
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("q_scale: token 0, head 0, scale of block 1 (dims 32..63): expected"),
            std::string::npos)
      << r.out;
  suite missing = filled;
  missing.cases[0].actual.pop_back();
  const program_result m = verify(missing);
  EXPECT_EQ(m.status, 1);
  EXPECT_NE(m.out.find("actual/weights is missing"), std::string::npos) << m.out;
  suite shape = filled;
  buffer& packed = shape.cases[0].actual[0];
  packed.at = dense({4, 2, 64});
  const program_result sh = verify(shape);
  EXPECT_EQ(sh.status, 1);
  EXPECT_NE(sh.out.find("actual/q_packed has shape [4, 2, 64]"), std::string::npos) << sh.out;
}

TEST(cli, accepts_this_repository) {
  const scratch folder;
  const program_result r = run_program("accept --report out --submission out.tar", folder.path(""));
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_TRUE(r.err.empty()) << r.err;
  EXPECT_NE(r.out.find("reference against triton_h200_a.h5: "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("verdict: conforms"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("GPU evidence"), std::string::npos) << r.out;
  EXPECT_TRUE(fs::exists(folder.path("out/report.json")));
  const program_result holds = run_program("report check --require-full out.tar", folder.path(""));
  EXPECT_EQ(holds.status, 0) << holds.out << holds.err;
  EXPECT_NE(holds.out.find("verdict: conforms: "), std::string::npos) << holds.out;
  std::fstream(folder.path("out.tar"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(100000)
      .put('\n');
  const program_result damaged = run_program("report check out.tar", folder.path(""));
  EXPECT_EQ(damaged.status, 1) << damaged.out << damaged.err;
  EXPECT_EQ(lines(damaged.out), 1u) << damaged.out;
}

}  // namespace
}  // namespace kvcts
