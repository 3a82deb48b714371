// kvcts decode: records of pages that the reference wrote.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/cases/cases.h"
#include "conformance/compare/token.h"
#include "conformance/runner/oracle.h"
#include "conformance/tests/tools.h"
#include "reference/contract/pages.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"

namespace kvcts {
namespace {

using testing_tools::case_named;
using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

// Every byte of a token by the way back: what does locate() say of it, and is it there?
void expect_located(const paged_view& view, const std::byte* storage, std::int64_t bytes,
                    std::int64_t page, std::int64_t position) {
  const decoded_token token = decode_token(view, storage, page, position);
  const auto block_of = [&](std::int64_t dim) -> const decoded_block& {
    const auto after = std::find_if(token.blocks.begin(), token.blocks.end(),
                                    [&](const decoded_block& b) { return b.first_dim > dim; });
    return *(after - 1);
  };
  std::int64_t values = 0, scales = 0;
  for (std::int64_t byte = 0; byte < bytes; ++byte) {
    const page_place at = locate(view, byte);
    if (at.in != page_place::where::record || at.page != page || at.position != position) continue;
    if (at.byte_in_element != 0 || at.region.kind == region_kind::pad) continue;
    const std::string text = text_of(kind_of(at.region.type), storage + byte);
    const std::string bits = text.substr(0, text.find(' '));
    const decoded_block& block = block_of(at.first_dim);
    if (at.region.kind == region_kind::scale) {
      ASSERT_EQ(block.first_dim, at.first_dim);
      ASSERT_EQ(block.scale_bits, bits) << text_of(at);
      ++scales;
      continue;
    }
    for (std::int64_t dim = at.first_dim; dim <= at.last_dim; ++dim) {
      const auto i = static_cast<std::size_t>(dim - block.first_dim);
      ASSERT_LT(i, block.codes.size());
      std::string code = bits;
      if (at.region.type == dtype::e2m1x2) code = {'0', 'x', bits[dim % 2 == 0 ? 3 : 2]};
      ASSERT_EQ(block.code_bits[i], code) << text_of(at);
      ++values;
    }
  }
  ASSERT_EQ(values, view.record.dims);
  ASSERT_EQ(scales, std::count_if(token.blocks.begin(), token.blocks.end(),
                                  [](const decoded_block& b) { return !b.scale_bits.empty(); }));
}

TEST(decode, every_byte_is_where_the_layout_has_it) {
  std::set<std::string> seen;
  for (const char* kernel :
       {"mxfp4_k_norm_quant_insert", "mxfp4_fused_prologue", "indexer_k_norm_quant_insert",
        "quantize_and_insert_k_cache", "indexer_k_norm_rope_store", "rope_quant_insert"}) {
    const kernel_contract& contract = contract_of(kernel);
    for (const case_spec& spec : cases_of(kernel, level::smoke, 1)) {
      test_case c = spec.build();
      if (c.is_sparse()) continue;
      fill_expected(c, profile::nvidia);
      std::vector<buffer> none;
      const call context = make_call(c.kernel, c.attributes, c.inputs, none);
      const bindings names = check(contract, context, false);
      for (const buffer& b : c.expected) {
        const std::optional<paged_view> view = paged_view_of(contract, context, names, b.name);
        if (!view || view->pages == 0) continue;
        const std::string kind = view->record.name + std::to_string(view->record.dims) +
                                 (view->tiled ? " tiled" : "") +
                                 std::string(name_of(view->record.data[0].type));
        if (!seen.insert(kind).second) continue;
        SCOPED_TRACE(c.kernel + "/" + c.name + "/" + b.name + " " + kind);
        for (std::int64_t position = 0; position < view->block_size; ++position) {
          expect_located(*view, b.data(), static_cast<std::int64_t>(b.size()), view->pages - 1,
                         position);
        }
      }
    }
  }
  for (const char* kind :
       {"v4512f8e4m3fn", "v41_mxfp8512f8e4m3fn", "v41_nvfp4512e2m1x2", "mxfp4_indexer128e2m1x2",
        "fp8_indexer128f8e4m3fn", "fp8_indexer128 tiledf8e4m3fn", "fp8_ds_mla576f8e4m3fn",
        "bf16512bf16", "fp8512f8e4m3fn"}) {
    EXPECT_EQ(seen.count(kind), 1u) << kind;
  }
}

// A page that the reference wrote, decoded by the program and read by the reference's reader.
void expect_as_the_reader_reads(const std::string& name, std::int64_t record) {
  test_case c = case_named("quantize_and_insert_k_cache", name);
  const buffer& cache = c.expected[0];
  const std::int64_t block_size = std::get<std::int64_t>(c.attributes.at("block_size"));
  const auto fnuz = std::get<std::int64_t>(c.attributes.at("use_fnuz"));
  const std::int64_t page_bytes = block_size * record;
  const std::byte* page = cache.data() + cache.at.offset;
  const scratch folder;
  std::ofstream(folder.path("page.bin"), std::ios::binary)
      .write(reinterpret_cast<const char*>(page), page_bytes);

  std::vector<buffer> inputs;
  const auto numbers = [](std::int32_t n) {
    std::vector<std::byte> bytes(4);
    store(bytes.data(), n);
    return bytes;
  };
  inputs.push_back({"out", dtype::bf16, dense({1, block_size, 512}),
                    std::vector<std::byte>(static_cast<std::size_t>(block_size) * 1024)});
  inputs.push_back({"k_cache", dtype::u8, dense({1, block_size, record}),
                    std::vector<std::byte>(page, page + page_bytes)});
  inputs.push_back({"seq_lens", dtype::i32, dense({1}), numbers(static_cast<int>(block_size))});
  inputs.push_back({"block_table", dtype::i32, dense({1, 1}), numbers(0)});
  const attribute_map attributes = {
      {"block_size", block_size}, {"offset", std::int64_t{0}}, {"use_fnuz", fnuz}};
  const std::vector<buffer> read =
      expected_results(contract_of("dequantize_and_gather_k_cache"), attributes, inputs, canary,
                       rules_for(profile::ieee));

  for (std::int64_t t = 0; t < block_size; ++t) {
    const program_result r = run_program(
        "decode " + std::to_string(record) + " page.bin --json --block-size " +
            std::to_string(block_size) + " --token " + std::to_string(t) + (fnuz ? " --fnuz" : ""),
        folder.path(""));
    ASSERT_EQ(r.status, 0) << r.err;
    const nlohmann::json token = nlohmann::json::parse(r.out);
    std::size_t dim = 0;
    for (const nlohmann::json& block : token["blocks"]) {
      ASSERT_EQ(block["first_dim"], dim);
      for (const nlohmann::json& value : block["values"]) {
        const auto want = decode_bf16(
            load<std::uint16_t>(read[0].data() + (t * 512 + static_cast<std::int64_t>(dim)) * 2));
        if (value.is_string()) {
          ASSERT_FALSE(std::isfinite(want)) << "token " << t << ", dim " << dim;
        } else {
          ASSERT_EQ(decode_bf16(encode_bf16(static_cast<float>(value.get<double>()))), want)
              << "token " << t << ", dim " << dim;
        }
        ++dim;
      }
    }
    ASSERT_EQ(dim, 512u);
  }
}

TEST(decode, the_reader_of_the_reference_reads_the_same) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const case_spec& spec : cases_of("quantize_and_insert_k_cache", level::acceptance, 1)) {
    const test_case c = spec.build();
    if (c.is_sparse()) continue;
    const auto record = std::get<std::int64_t>(c.attributes.at("bytes_per_token"));
    const auto fnuz = std::get<std::int64_t>(c.attributes.at("use_fnuz"));
    const auto slots = c.input("slot_mapping")->bytes.size() / 8;
    if (slots < 8 || !seen.emplace(record, fnuz).second) continue;
    SCOPED_TRACE(c.name);
    expect_as_the_reader_reads(c.name, record);
  }
  EXPECT_EQ(seen.size(), 4u);
}

void write_page(const std::string& path, const std::vector<int>& bytes) {
  std::ofstream out(path, std::ios::binary);
  for (const int b : bytes) out.put(static_cast<char>(b));
}

TEST(decode, a_page_by_hand) {
  const scratch folder;
  // Two MXFP4 keys of 32 dims; the second: 1.5 and -6, then zeros, scale 2^3.
  std::vector<int> page(2 * 17, 0);
  page[16] = 0xF3;
  page[32] = 0x7F;
  page[33] = 0x82;
  write_page(folder.path("page.bin"), page);
  const std::string command = "decode mxfp4_indexer page.bin --block-size 2 --token 1 --dims 32";
  const program_result text = run_program(command, folder.path(""));
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("mxfp4_indexer (17 bytes), page 0, token 1\n"
                          "dims 0..31 (e2m1x2), scale 0x82 = 8\n"
                          "     0  0x3 12            0xF -48           0x0 0 "),
            std::string::npos)
      << text.out;
  const program_result json = run_program(command + " --json", folder.path(""));
  const nlohmann::json token = nlohmann::json::parse(json.out);
  EXPECT_EQ(token["blocks"][0]["values"][0], 12.0);
  EXPECT_EQ(token["blocks"][0]["values"][1], -48.0);
  EXPECT_EQ(token["blocks"][0]["scale_bits"], "0x82");

  // A scale of NaN.
  page[33] = 0xFF;
  write_page(folder.path("page.bin"), page);
  const program_result nan = run_program(command + " --json", folder.path(""));
  EXPECT_EQ(nlohmann::json::parse(nan.out)["blocks"][0]["scale"], "nan") << nan.out;
}

TEST(decode, pages_that_lie_apart) {
  const scratch folder;
  std::vector<int> pages(40 + 34, 0);
  pages[40 + 32] = 0x80;
  write_page(folder.path("page.bin"), pages);
  const program_result r =
      run_program("decode 68 page.bin --block-size 2 --token 0 --dims 32 --page 1 --page-stride 40",
                  folder.path(""));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("scale 0x80 = 2"), std::string::npos) << r.out;
}

TEST(decode, refuses_what_does_not_fit) {
  const scratch folder;
  write_page(folder.path("page.bin"), std::vector<int>(2 * 584, 0));
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const program_result r = run_program("decode " + arguments, folder.path(""));
    EXPECT_EQ(r.status, 2) << arguments << r.out;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << arguments << ": " << r.err;
  };
  refused("585 page.bin --block-size 2 --token 0",
          "unknown record '585': the records are v4 (584)");
  refused("584 none.bin --block-size 2 --token 0", "none.bin: cannot be read");
  refused("584 . --block-size 2 --token 0", "cannot be read");
  refused("584 page.bin --block-size 3 --token 0",
          "page.bin: has 1168 bytes, which are no whole pages of 1752 (3 tokens of 584 bytes)");
  refused("528 page.bin --block-size 2 --token 0", "no whole pages of 1056");
  refused("584 page.bin --block-size 2 --token 2",
          "--token 2: a page of 2 tokens has tokens 0 to 1");
  refused("584 page.bin --block-size 2 --token -1", "--token -1");
  refused("584 page.bin --block-size 0 --token 0", "--block-size 0");
  refused("584 page.bin --block-size 2 --token 0 --page 1", "--page 1: page.bin has pages 0 to 0");
  refused("584 page.bin --block-size 2 --token 0 --page-stride 1000", "--page-stride 1000");
  refused("584 page.bin --block-size 2 --token 0 --dims 128", "leave --dims out");
  refused("68 page.bin --block-size 2 --token 0 --dims 33", "--dims 33: give a multiple of 32");
  refused("288 page.bin --block-size 2 --token 0 --fnuz", "no FNUZ codes");
  refused("584 page.bin --block-size 2 --token 0 --tiled", "--tiled");
  refused("132 page.bin --block-size 2 --token 0 --tiled", "a multiple of 16");
  refused("584 page.bin --token 0", "--block-size");
}

}  // namespace
}  // namespace kvcts
