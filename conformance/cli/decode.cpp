// kvcts decode: one token's record of a raw page dump.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/cli/commands.h"
#include "conformance/compare/token.h"

namespace kvcts {
namespace {

using nlohmann::ordered_json;

struct known_record {
  const char *name, *bytes;
  bool dims, fp8;  // takes --dims; --fnuz
};
constexpr known_record known[] = {
    {"v4", "584", false, true},         {"v41_mxfp8", "528", false, true},
    {"v41_nvfp4", "288", false, false}, {"mxfp4_indexer", "68", true, false},
    {"fp8_indexer", "132", true, true}, {"fp8_ds_mla", "656", false, true},
    {"bf16", "1024", false, false},     {"fp8", "512", false, true},
};

const known_record& known_of(const std::string& name) {
  std::string all;
  for (const known_record& r : known) {
    if (name == r.name || name == r.bytes) return r;
    all += fmt::format(" {} ({})", r.name, r.bytes);
  }
  throw input_error(fmt::format("unknown record '{}': the records are{}", name, all));
}

paged_record record_named(const decode_arguments& arguments) {
  const known_record& of = known_of(arguments.record);
  const std::int64_t dims = arguments.dims.value_or(128);
  if (arguments.dims && !of.dims) {
    throw input_error(
        fmt::format("--dims {}: the record {} has fixed dims, leave --dims out", dims, of.name));
  }
  if (dims < 32 || dims % 32 != 0 || dims > 65536) {
    throw input_error(fmt::format("--dims {}: give a multiple of 32, up to 65536", dims));
  }
  if (arguments.fnuz && !of.fp8) {
    throw input_error(
        fmt::format("--fnuz: the record {} has no FNUZ codes, leave it out", of.name));
  }
  if (arguments.tiled && std::string_view(of.name) != "fp8_indexer") {
    throw input_error("--tiled: only the record fp8_indexer has a tiled layout, leave it out");
  }
  const std::string_view name = of.name;
  const std::int64_t bytes = name == "mxfp4_indexer" ? dims / 2 + dims / 32
                             : name == "fp8_indexer" ? dims + 4
                                                     : std::stoll(of.bytes);
  return *record_of(name, bytes, arguments.fnuz ? dtype::f8e4m3fnuz : dtype::f8e4m3fn);
}

std::vector<std::byte> read_file(const std::string& path, std::int64_t first, std::int64_t bytes) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> read(static_cast<std::size_t>(bytes));
  in.seekg(first);
  in.read(reinterpret_cast<char*>(read.data()), bytes);
  if (!in) throw input_error(path + ": cannot be read: name a file of raw page bytes");
  return read;
}

std::int64_t file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::int64_t bytes = in ? static_cast<std::int64_t>(in.tellg()) : -1;
  // What opens but has no size (a folder) gives the largest number.
  if (bytes < 0 || bytes == std::numeric_limits<std::int64_t>::max()) {
    throw input_error(path + ": cannot be read: name a file of raw page bytes");
  }
  return bytes;
}

// Shortest text that reads back as the same number.
std::string text_of(double value) { return fmt::format("{}", value); }

ordered_json json_of(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void print_text(const paged_record& record, const decoded_token& token) {
  constexpr std::size_t a_line = 8;
  for (const decoded_block& b : token.blocks) {
    fmt::print("dims {}..{} ({})", b.first_dim,
               b.first_dim + static_cast<std::int64_t>(b.values.size()) - 1, name_of(b.type));
    if (!b.scale_bits.empty()) fmt::print(", scale {} = {}", b.scale_bits, text_of(b.scale));
    fmt::print("\n");
    for (std::size_t i = 0; i < b.values.size(); i += a_line) {
      fmt::print("  {:>4}", b.first_dim + static_cast<std::int64_t>(i));
      for (std::size_t j = i; j < std::min(i + a_line, b.values.size()); ++j) {
        fmt::print("  {} {:<12}", b.code_bits[j], text_of(b.values[j]));
      }
      fmt::print("\n");
    }
  }
  for (const std::uint8_t byte : token.pad) fmt::print("pad 0x{:02X}\n", byte);
  if (record.name == "fp8") fmt::print("unscaled: this record's scale is not in the page\n");
}

void print_json(const decode_arguments& arguments, const paged_record& record,
                const decoded_token& token) {
  ordered_json out;
  out["record"] = record.name;
  out["bytes"] = record.bytes();
  out["page"] = arguments.page;
  out["token"] = arguments.token;
  out["blocks"] = ordered_json::array();
  for (const decoded_block& b : token.blocks) {
    ordered_json block;
    block["first_dim"] = b.first_dim;
    block["dtype"] = name_of(b.type);
    if (!b.scale_bits.empty()) {
      block["scale_bits"] = b.scale_bits;
      block["scale"] = json_of(b.scale);
    }
    block["code_bits"] = b.code_bits;
    for (const double v : b.values) block["values"].push_back(json_of(v));
    out["blocks"].push_back(std::move(block));
  }
  out["pad"] = token.pad;
  fmt::print("{}\n", out.dump(1));
}

}  // namespace

int decode_command(const decode_arguments& arguments) {
  const paged_record record = record_named(arguments);
  const std::int64_t most = std::int64_t{1} << 40;
  if (arguments.block_size < 1 || arguments.block_size > most / record.bytes()) {
    throw input_error(
        fmt::format("--block-size {}: give the tokens of a page, from 1 on", arguments.block_size));
  }
  if (arguments.tiled && arguments.block_size % 16 != 0) {
    throw input_error(fmt::format("--block-size {}: the tiled layout needs a multiple of 16",
                                  arguments.block_size));
  }
  if (arguments.token < 0 || arguments.token >= arguments.block_size) {
    throw input_error(fmt::format("--token {}: a page of {} tokens has tokens 0 to {}",
                                  arguments.token, arguments.block_size, arguments.block_size - 1));
  }
  const std::int64_t payload = arguments.block_size * record.bytes();
  const std::int64_t stride = arguments.page_stride.value_or(payload);
  if (stride < payload || stride > most) {
    throw input_error(fmt::format("--page-stride {}: a page of {} tokens of {} bytes takes {}",
                                  stride, arguments.block_size, record.bytes(), payload));
  }
  const std::int64_t bytes = file_bytes(arguments.file);
  // The last page may end with its payload.
  const bool fits = bytes >= payload && (bytes % stride == 0 || bytes % stride >= payload);
  if (!fits || (!arguments.page_stride && bytes % payload != 0)) {
    throw input_error(fmt::format(
        "{}: has {} bytes, which are no whole pages of {} ({} tokens of {} bytes): mend "
        "--block-size or the record, or give --page-stride where pages lie apart",
        arguments.file, bytes, payload, arguments.block_size, record.bytes()));
  }
  const std::int64_t pages = (bytes + stride - payload) / stride;
  if (arguments.page < 0 || arguments.page >= pages) {
    throw input_error(
        fmt::format("--page {}: {} has pages 0 to {}", arguments.page, arguments.file, pages - 1));
  }
  paged_view view;
  view.record = record;
  view.pages = 1;
  view.block_size = arguments.block_size;
  view.page_stride = stride;
  view.entry_stride = record.bytes();
  view.tiled = arguments.tiled;
  const std::vector<std::byte> page = read_file(arguments.file, arguments.page * stride, payload);
  const decoded_token token = decode_token(view, page.data(), 0, arguments.token);
  if (arguments.json) {
    print_json(arguments, record, token);
  } else {
    fmt::print("{} ({} bytes), page {}, token {}\n", record.name, record.bytes(), arguments.page,
               arguments.token);
    print_text(record, token);
  }
  return 0;
}

}  // namespace kvcts
