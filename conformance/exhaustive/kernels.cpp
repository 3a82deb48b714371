// A candidate's kernels over every amax with every tie, and over every small shape.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>

#include "conformance/cases/slots.h"
#include "conformance/exhaustive/sweep.h"
#include "conformance/runner/run.h"
#include "reference/formats/nearest.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

// Runs a case; the first place that differs, told with `what`.
class examined {
 public:
  examined(candidate& subject, profile p)
      : subject_(subject),
        rules_(p),
        // The built-in ones keep nothing between calls; others may serve one call at a time.
        at_once_(subject.name() == "cpu" || subject.name() == "reference") {}

  sweep_finding run(const test_case& c, std::uint64_t inputs, const std::string& what) {
    std::unique_lock<std::mutex> alone(guard_, std::defer_lock);
    if (!at_once_) alone.lock();
    const case_result result = run_case(c, subject_, rules_);
    sweep_finding found;
    found.inputs = inputs;
    if (result.what == outcome::passed) return found;
    found.mismatches = std::max<std::uint64_t>(result.bytes_different, 1);
    found.first = what + ": " + result.message;
    if (!result.places.empty()) {
      const difference& d = result.places.front();
      found.first = fmt::format("{}: {}: {}: expected {}, got {}", what, d.argument, d.place,
                                d.expected, d.got);
    }
    return found;
  }

 private:
  candidate& subject_;
  profile rules_;
  bool at_once_;
  std::mutex guard_;
};

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
sweep amax_sweep(const std::shared_ptr<examined>& with, const std::string& name,
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

// --- Every small shape.

// Digits of a number in mixed radix: the first one turns fastest.
class digits {
 public:
  explicit digits(std::uint64_t number) : left_(number) {}
  std::int64_t below(std::uint64_t radix) {
    const std::uint64_t digit = left_ % radix;
    left_ /= radix;
    return static_cast<std::int64_t>(digit);
  }

 private:
  std::uint64_t left_;
};

void draw_rows(draw& from, buffer& rows, const block_rules& rules, std::int64_t block) {
  std::int64_t number = 0;
  const tensor_view view = rows.view();
  const std::int64_t dims = view.dim(view.rank() - 1);
  std::vector<std::uint16_t> row(static_cast<std::size_t>(dims));
  for (std::int64_t t = 0; t < view.dim(0); ++t) {
    for (std::int64_t h = 0; h < (view.rank() == 3 ? view.dim(1) : 1); ++h) {
      fill_row(from, content::mixed, rules, number, row.data(), dims, block);
      std::memcpy(view.rank() == 3 ? view.element(t, h, 0) : view.element(t, 0), row.data(),
                  row.size() * 2);
    }
  }
}

// Tokens 0..8, heads 1..8, padded heads 0..3, gaps, both weight dtypes.
constexpr std::uint64_t query_shapes = 9 * 8 * 4 * 2 * 2;
test_case query_shape(std::uint64_t number) {
  digits of(number);
  draw from(seed_of(1, "mxfp4_q_quant", std::to_string(number)));
  const std::int64_t tokens = of.below(9), heads = 1 + of.below(8), padding = of.below(4),
                     gap = of.below(2) * 8;
  const bool f32 = of.below(2) != 0;
  test_case made;
  made.kernel = "mxfp4_q_quant";
  buffer q = make_buffer("index_q", dtype::bf16,
                         {{tokens, heads, 128}, {heads * (128 + gap) + gap, 128 + gap, 1}, gap});
  draw_rows(from, q, e2m1_rules(), 32);
  buffer weights = make_buffer("index_weights", f32 ? dtype::f32 : dtype::bf16,
                               {{tokens, heads}, {heads + gap, 1}, 0});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::uint32_t bits = any_f32(from);
      if (f32) {
        store(weights.view().element(t, h), bits);
      } else {
        store(weights.view().element(t, h), static_cast<std::uint16_t>(bits >> 16));
      }
    }
  }
  made.attributes["weight_scale"] = 0.08838834764831845;
  made.attributes["padded_num_heads"] = heads + padding;
  made.inputs = {std::move(q), std::move(weights)};
  return made;
}

// Tokens 0..8, pages of 1..8 tokens, both records, gaps, both tables, negative slots.
constexpr std::uint64_t insert_shapes = 9 * 8 * 2 * 2 * 2 * 2;
test_case insert_shape(std::uint64_t number) {
  digits of(number);
  draw from(seed_of(1, "quantize_and_insert_k_cache", std::to_string(number)));
  const std::int64_t tokens = of.below(9), block_size = 1 + of.below(8);
  const std::int64_t record = of.below(2) != 0 ? 584 : 528;
  const std::int64_t gap = of.below(2) * 16;
  const bool fnuz = of.below(2) != 0, negative = of.below(2) != 0;
  test_case made;
  made.kernel = "quantize_and_insert_k_cache";
  buffer k = make_buffer("k", dtype::bf16, {{tokens, 512}, {512 + gap, 1}, 0});
  draw_rows(from, k, e4m3_rules(fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn),
            record == 584 ? 64 : 32);
  page_shape pages{.blocks = tokens / block_size + 2, .block_size = block_size, .row = record};
  pages.page_gap = gap;
  buffer cache = draw_pages(from, "k_cache", dtype::u8, pages);
  made.attributes["block_size"] = block_size;
  made.attributes["use_fnuz"] = std::int64_t{fnuz ? 1 : 0};
  made.attributes["bytes_per_token"] = record;
  buffer slots = integers("slot_mapping", draw_slots(from, tokens, pages.blocks * block_size,
                                                     slot_kind::shuffled, negative));
  made.inputs = {std::move(k), std::move(cache), std::move(slots)};
  return made;
}

// D 32..1024, tokens 0..5, pages of 1..4 tokens, warps 1, 2, 4.
constexpr std::uint64_t key_shapes = 6 * 6 * 4 * 3;
test_case key_shape(std::uint64_t number) {
  digits of(number);
  draw from(seed_of(1, "mxfp4_k_norm_quant_insert", std::to_string(number)));
  const std::int64_t dims = std::int64_t{32} << of.below(6), tokens = of.below(6);
  const std::int64_t block_size = 1 + of.below(4), warps = std::int64_t{1} << of.below(3);
  test_case made;
  made.kernel = "mxfp4_k_norm_quant_insert";
  buffer k = make_buffer("k", dtype::bf16, dense({tokens, dims}));
  draw_rows(from, k, e2m1_rules(), 32);
  made.inputs.push_back(std::move(k));
  for (const char* name : {"norm_weight", "norm_bias"}) {
    buffer parameter = make_buffer(name, dtype::f32, dense({dims}));
    for (std::int64_t d = 0; d < dims; ++d) store(parameter.view().element(d), any_f32(from));
    made.inputs.push_back(std::move(parameter));
  }
  const page_shape pages{
      .blocks = tokens / block_size + 2, .block_size = block_size, .row = dims / 2 + dims / 32};
  made.inputs.push_back(integers("slot_mapping", draw_slots(from, tokens, pages.blocks * block_size,
                                                            slot_kind::shuffled, number % 2 == 1)));
  made.inputs.push_back(draw_pages(from, "kv_cache", dtype::u8, pages));
  made.inputs.push_back(make_buffer("topk_indices_buffer", dtype::i32,
                                    dense({tokens, static_cast<std::int64_t>(number % 5)})));
  made.attributes["norm_eps"] = 1e-6;
  made.attributes["num_tokens"] = tokens;
  made.attributes["num_warps"] = warps;
  return made;
}

// Three orders, heads 1..8, head dims 32..128, groups 0..3, rows of 0..4 elements.
constexpr std::uint64_t layout_shapes = 3 * 8 * 4 * 4 * 5;
test_case layout_shape(std::uint64_t number) {
  digits of(number);
  draw from(seed_of(1, "fused_layout", std::to_string(number)));
  constexpr const char* ops[] = {"q", "o", "o_chunk"};
  const std::int64_t op = of.below(3), heads = 1 + of.below(8), head_dim = 32 * (1 + of.below(4));
  const std::int64_t groups = op == 0 ? 1 : of.below(4);
  if (op == 0) of.below(4);
  test_case made;
  made.kernel = "fused_layout";
  buffer x = make_buffer(
      "x", dtype::u8, dense({groups * heads * (op == 2 ? head_dim / 32 : head_dim), of.below(5)}));
  for (std::byte& b : x.bytes) b = static_cast<std::byte>(from.below(256));
  made.attributes["op"] = std::string(ops[op]);
  made.attributes["heads"] = heads;
  made.attributes["head_dim"] = head_dim;
  made.inputs.push_back(std::move(x));
  return made;
}

sweep shape_sweep(const std::shared_ptr<examined>& with, const std::string& kernel,
                  const std::string& text, std::uint64_t shapes,
                  test_case (*build)(std::uint64_t)) {
  sweep made;
  made.name = "shape." + kernel;
  made.text = "every shape: " + text;
  made.inputs = shapes;
  made.piece = 64;
  made.check = [with, build](const sweep_range& range) {
    sweep_finding found;
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const std::uint64_t number = range.first + i * range.stride;
      found.add(with->run(build(number), 1, fmt::format("shape {}", number)));
    }
    return found;
  };
  return made;
}

}  // namespace

std::vector<sweep> kernel_sweeps(candidate& subject, profile p) {
  const auto with = std::make_shared<examined>(subject, p);
  std::vector<sweep> all;
  if (subject.supports("mxfp4_q_quant")) {
    all.push_back(amax_sweep(with, "mxfp4", "through mxfp4_q_quant",
                             {definition::e2m1_magnitudes(), 32, 6.0}, 4096, query_case));
    all.push_back(shape_sweep(with, "mxfp4_q_quant",
                              "0..8 tokens, 1..8 heads, 0..3 padded heads, gaps, both weight types",
                              query_shapes, query_shape));
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
    all.push_back(shape_sweep(with, "quantize_and_insert_k_cache",
                              "0..8 tokens, pages of 1..8, both records and tables, gaps, slots",
                              insert_shapes, insert_shape));
  }
  if (subject.supports("rope_quant_insert")) {
    all.push_back(amax_sweep(with, "nvfp4", "through rope_quant_insert, record v41_nvfp4",
                             {definition::e2m1_magnitudes(), 16, 6.0, true}, 4096, nvfp4_case));
  }
  if (subject.supports("mxfp4_k_norm_quant_insert")) {
    all.push_back(shape_sweep(with, "mxfp4_k_norm_quant_insert",
                              "dims 32..1024, 0..5 tokens, pages of 1..4, 1, 2 and 4 warps",
                              key_shapes, key_shape));
  }
  if (subject.supports("fused_layout")) {
    all.push_back(shape_sweep(with, "fused_layout",
                              "three orders, 1..8 heads, head dims 32..128, 0..3 groups, rows of "
                              "0..4 bytes",
                              layout_shapes, layout_shape));
  }
  return all;
}

}  // namespace kvcts
