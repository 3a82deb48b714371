// A candidate's block formats over every amax with every tie.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "conformance/cases/slots.h"
#include "conformance/exhaustive/examined.h"
#include "conformance/exhaustive/sweep.h"
#include "reference/formats/nearest.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

// --- Every amax with every tie.

// A block format: what its ties are, and which scale an amax gives. The scale only places the
// elements: any bits are a fair input.
struct block_format {
  definition::magnitudes values;
  std::size_t block = 32;
  double limit = 6;
  bool e4m3_scale = false;  // else a power of two

  double scale(double amax) const {
    if (e4m3_scale) {
      const definition::magnitudes scales = definition::e4m3fn_magnitudes();
      return scales[definition::nearest_code(scales)(
          std::min(std::max(amax / limit, 0x1p-9), 448.0))];
    }
    int exponent = 0;
    const double fraction = std::frexp(amax / limit, &exponent);
    return amax == 0 ? 0x1p-126 : std::ldexp(1.0, fraction == 0.5 ? exponent - 1 : exponent);
  }
};

constexpr std::uint64_t finite_bf16 = 0x7F80;  // magnitudes

// Each midpoint of two codes, and the bf16 numbers below and above it, with both signs, cut into
// blocks that hold the amax too. Elements past the amax are zero.
void append_ties(const block_format& format, std::uint16_t amax, std::vector<std::uint16_t>& to) {
  const double scale = format.scale(definition::from_bits(std::uint32_t{amax} << 16));
  std::vector<std::uint16_t> elements;
  for (std::size_t code = 0; code + 1 < format.values.size(); ++code) {
    const double tie = (format.values[code] + format.values[code + 1]) / 2 * scale;
    const auto bits = static_cast<std::uint16_t>(bits_of(static_cast<float>(tie)) >> 16);
    for (const int step : {-1, 0, 1}) {
      const int magnitude = bits + step;
      if (magnitude < 0 || magnitude > amax) continue;
      elements.push_back(static_cast<std::uint16_t>(magnitude));
      elements.push_back(static_cast<std::uint16_t>(magnitude | 0x8000));
    }
  }
  const std::size_t most = format.values.size() * 6;
  const std::size_t others = format.block - 1;
  for (std::size_t first = 0; first < most; first += others) {
    const std::size_t place = (amax + first) % format.block;  // of the amax
    std::size_t next = first;
    for (std::size_t i = 0; i < format.block; ++i) {
      const bool negative = (amax + first) % 3 == 0;
      if (i == place) {
        to.push_back(static_cast<std::uint16_t>(negative ? amax | 0x8000 : amax));
      } else {
        to.push_back(next < elements.size() ? elements[next] : 0);
        ++next;
      }
    }
  }
}

// Rows of `row` elements, of which the first `used` are blocks.
buffer rows_of_blocks(std::string_view name, const std::vector<std::uint16_t>& blocks,
                      std::int64_t used, std::int64_t row) {
  const auto all = static_cast<std::int64_t>(blocks.size());
  const std::int64_t rows = (all + used - 1) / used;
  buffer made = make_buffer(name, dtype::bf16, dense({rows, row}));
  std::fill(made.bytes.begin(), made.bytes.end(), std::byte{0});
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t count = std::min(used, all - r * used);
    std::memcpy(made.view().element(r, 0), blocks.data() + r * used,
                static_cast<std::size_t>(count) * 2);
  }
  return made;
}

std::vector<std::int64_t> counting(std::int64_t n) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = i;
  return numbers;
}

buffer cold_pages(std::string_view name, std::int64_t tokens, std::int64_t record) {
  constexpr std::int64_t block_size = 64;
  return make_buffer(name, dtype::u8,
                     dense({(tokens + block_size - 1) / block_size, block_size, record}));
}

test_case query_case(const std::vector<std::uint16_t>& blocks) {
  test_case made;
  made.kernel = "mxfp4_q_quant";
  buffer q = rows_of_blocks("index_q", blocks, 128, 128);
  const std::int64_t tokens = q.at.shape[0];
  q.at = dense({tokens, 1, 128});
  buffer weights = make_buffer("index_weights", dtype::f32, dense({tokens, 1}));
  std::fill(weights.bytes.begin(), weights.bytes.end(), std::byte{0});
  made.attributes["weight_scale"] = 1.0;
  made.attributes["padded_num_heads"] = std::int64_t{1};
  made.inputs = {std::move(q), std::move(weights)};
  return made;
}

test_case insert_case(const std::vector<std::uint16_t>& blocks, std::int64_t record, bool fnuz) {
  test_case made;
  made.kernel = "quantize_and_insert_k_cache";
  buffer k = rows_of_blocks("k", blocks, record == 584 ? 448 : 512, 512);
  const std::int64_t tokens = k.at.shape[0];
  made.attributes["block_size"] = std::int64_t{64};
  made.attributes["use_fnuz"] = std::int64_t{fnuz ? 1 : 0};
  made.attributes["bytes_per_token"] = record;
  made.inputs = {std::move(k), cold_pages("k_cache", tokens, record),
                 integers("slot_mapping", counting(tokens))};
  return made;
}

// The rotation by nothing leaves the elements as they are.
test_case nvfp4_case(const std::vector<std::uint16_t>& blocks) {
  test_case made;
  made.kernel = "rope_quant_insert";
  buffer latent = rows_of_blocks("latent", blocks, 512, 512);
  const std::int64_t tokens = latent.at.shape[0];
  buffer table = make_buffer("cos_sin_cache", dtype::f32, dense({1, 64}));
  for (std::int64_t i = 0; i < 64; ++i) store(table.view().element(0, i), i < 32 ? 1.0F : 0.0F);
  made.attributes["compress_ratio"] = std::int64_t{1};
  made.attributes["record"] = std::string("v41_nvfp4");
  made.inputs = {
      std::move(latent),
      integers("positions", std::vector<std::int64_t>(static_cast<std::size_t>(tokens), 0)),
      std::move(table), cold_pages("kv_cache", tokens, 288),
      integers("slot_mapping", counting(tokens))};
  return made;
}

template <class Build>
sweep amax_sweep(const std::shared_ptr<examined_cases>& with, const std::string& name,
                 const std::string& text, const block_format& format, std::uint64_t piece,
                 Build build) {
  sweep made;
  made.name = "block." + name;
  made.text = "every bf16 amax with every tie and its neighbours, " + text;
  made.inputs = finite_bf16;
  made.piece = piece;
  made.check = [with, format, build](const sweep_range& range) {
    std::vector<std::uint16_t> blocks;
    for (std::uint64_t i = 0; i < range.count; ++i) {
      append_ties(format, static_cast<std::uint16_t>(range.first + i * range.stride), blocks);
    }
    return with->run(
        build(blocks), range.count,
        fmt::format("{} amaxes from 0x{:04X}, {} apart", range.count, range.first, range.stride));
  };
  return made;
}

}  // namespace

std::vector<sweep> block_sweeps(candidate& subject, profile p) {
  const auto with = std::make_shared<examined_cases>(subject, p);
  std::vector<sweep> all;
  if (subject.supports("mxfp4_q_quant")) {
    all.push_back(amax_sweep(with, "mxfp4", "through mxfp4_q_quant",
                             {definition::e2m1_magnitudes(), 32, 6.0}, 4096, query_case));
  }
  if (subject.supports("quantize_and_insert_k_cache")) {
    for (const std::int64_t record : {528, 584}) {
      for (const bool fnuz : {false, true}) {
        const block_format format = {
            fnuz ? definition::e4m3fnuz_magnitudes() : definition::e4m3fn_magnitudes(),
            static_cast<std::size_t>(record == 584 ? 64 : 32), fnuz ? 224.0 : 448.0};
        all.push_back(amax_sweep(
            with, fmt::format("{}.{}", record == 584 ? "v4" : "mxfp8", fnuz ? "fnuz" : "ocp"),
            fmt::format("through quantize_and_insert_k_cache, record {}", record), format, 512,
            [record, fnuz](const std::vector<std::uint16_t>& blocks) {
              return insert_case(blocks, record, fnuz);
            }));
      }
    }
  }
  if (subject.supports("rope_quant_insert")) {
    all.push_back(amax_sweep(with, "nvfp4", "through rope_quant_insert, record v41_nvfp4",
                             {definition::e2m1_magnitudes(), 16, 6.0, true}, 4096, nvfp4_case));
  }
  return all;
}

}  // namespace kvcts
