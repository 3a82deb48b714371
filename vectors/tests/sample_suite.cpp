#include "vectors/tests/sample_suite.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kvcts::testing_tools {

scratch::scratch() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/kvcts-vectors-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
  folder_ = pattern;
}

scratch::~scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> scratch::names() const {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    found.push_back(entry.path().filename().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

buffer filled(const std::string& name, dtype type, extent at, std::uint32_t seed,
              std::int64_t guards) {
  buffer b;
  b.name = name;
  b.type = type;
  b.bytes.resize(static_cast<std::size_t>(reach(at) + guards) * size_of(type));
  b.at = std::move(at);
  std::uint32_t state = seed;
  for (std::byte& byte : b.bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return b;
}

namespace {

buffer slots(const std::vector<std::int64_t>& values) {
  buffer b;
  b.name = "slot_mapping";
  b.type = dtype::i64;
  b.at = dense({static_cast<std::int64_t>(values.size())});
  b.bytes.resize(values.size() * sizeof(std::int64_t));
  std::memcpy(b.bytes.data(), values.data(), b.bytes.size());
  return b;
}

test_case insert_case(const std::string& name, const std::vector<std::int64_t>& slot_mapping) {
  test_case c;
  c.kernel = "quantize_and_insert_k_cache";
  c.name = name;
  c.flags = {"StridedPage", "NegativeSlot"};
  c.attributes = {{"block_size", std::int64_t{4}},
                  {"use_fnuz", std::int64_t{0}},
                  {"bytes_per_token", std::int64_t{584}}};
  const extent pages = {{2, 4, 584}, {2400, 584, 1}, 16};
  c.inputs = {filled("k", dtype::bf16, dense({5, 512}), 11),
              filled("k_cache", dtype::u8, pages, 12, 32), slots(slot_mapping)};
  c.expected = {c.inputs[1]};
  return c;
}

}  // namespace

suite sample_suite() {
  suite s;
  s.info.producer = "tests";
  s.info.seed = 0xfedcba9876543210;
  s.info.others = {{"generator_version", std::int64_t{3}}, {"note", std::string("made by hand")}};

  test_case q;
  q.kernel = "mxfp4_q_quant";
  q.name = "t3_h2_p4";
  q.attributes = {{"weight_scale", 0.125}, {"padded_num_heads", std::int64_t{4}}};
  q.inputs = {filled("index_q", dtype::bf16, {{3, 2, 128}, {400, 160, 1}, 8}, 1, 24),
              filled("index_weights", dtype::f32, dense({3, 2}), 2)};
  q.expected = {filled("q_packed", dtype::u8, dense({3, 4, 64}), 3),
                filled("q_scale", dtype::i32, dense({3, 4}), 4),
                filled("weights", dtype::f32, dense({3, 4}), 5)};
  s.cases.push_back(q);

  test_case inserted = insert_case("n5", {7, -1, 0, 3, -2});
  inserted.expected[0].bytes[16 + 5] ^= std::byte{0xff};
  s.cases.push_back(inserted);
  s.cases.push_back(insert_case("n5_skipped", {-1, -1, -5, -1, -1}));
  return s;
}

buffer& find(std::vector<buffer>& in, const std::string& name) {
  for (buffer& b : in) {
    if (b.name == name) return b;
  }
  throw std::runtime_error("no buffer " + name);
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string error_of_reading(const std::string& path) {
  try {
    const vector_file file(path);
    for (const vector_file::entry& which : file.cases()) file.read(which);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace kvcts::testing_tools
