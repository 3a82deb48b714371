// Cases of indexer_k_norm_rope_store: k_pre [N, 128] bf16 into pages of 132 or 68 bytes a token.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/build.h"
#include "conformance/cases/order.h"
#include "conformance/cases/rotation.h"
#include "conformance/cases/slots.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "indexer_k_norm_rope_store";
constexpr std::int64_t dims = 128, rotated = 64, mxfp4_block = 32;

// How content reaches the quantization through the norm.
enum class norm_way : std::uint8_t {
  plain,    // the content is the row before the norm
  passed,   // rows so small against eps that the norm multiplies by a power of two
  weights,  // rows of +-1, whose norm gives the weights: these hold the content
  order     // another order of the sum gives another reciprocal root, and that other codes
};

struct k_options {
  std::int64_t rows = 0, tokens = 0;  // N, S
  std::int64_t block_size = 16, ratio = 1;
  bool mxfp4 = false, tiled = false;
  content what = content::mixed;
  norm_way way = norm_way::plain;
  turns how = turns::drawn;
  bool bf16_table = false, f32_weights = false;
  std::int64_t page_gap = 0, offset = 0, guard = 0;  // bytes
  std::int64_t row_gap = 0, table_gap = 0;           // elements
  bool warm = false, negative = false;
  slot_kind slots = slot_kind::shuffled;
  int eps = 0;  // of the table below, where the way is plain
  level from = level::acceptance;
};

constexpr double epsilons[] = {1e-6, 0.0, 1e-5, 0x1.000001p0};

std::int64_t exponent_of(std::uint16_t bits) { return (bits >> 7 & 0xFF) - 127; }
bool is_finite(std::uint16_t bits) { return (bits & 0x7F80) != 0x7F80; }

// bf16 times 2^by; what falls below the subnormals is truncated.
std::uint16_t times_power(std::uint16_t bits, std::int64_t by) {
  if (!is_finite(bits)) return bits;
  const std::uint16_t sign = bits & 0x8000;
  const std::uint64_t field = bits >> 7 & 0xFF;
  const std::uint64_t n = (bits & 0x7F) + (field == 0 ? 0 : 128);
  const std::int64_t exponent = (field == 0 ? 1 : static_cast<std::int64_t>(field)) - 134;
  return static_cast<std::uint16_t>(sign | bf16_scaled(n, exponent + by));
}

bool is_low(content what) {
  return what == content::floor || what == content::subnormal || what == content::zero;
}
// Rows that pass the norm are below 2^-12, eps is 1: 1 + the mean of their squares is 1 in f32.
std::int64_t power_of_weights(const k_options& o) { return is_low(o.what) ? 0 : 114; }

void make_passable(std::vector<std::uint16_t>& values, std::int64_t power) {
  std::int64_t highest = -127;
  for (const std::uint16_t v : values) {
    if (is_finite(v)) highest = std::max(highest, exponent_of(v));
  }
  const std::int64_t down = std::max<std::int64_t>(highest - (power - 13), 0);
  for (std::uint16_t& v : values) v = times_power(v, -power - down);
}

// Weights that carry each product of an order row to a border.
std::vector<std::uint32_t> order_weights(draw& from, const order_row& row, const block_rules& rules,
                                         std::int64_t scale) {
  std::vector<std::uint32_t> weights;
  for (std::size_t d = 0; d < row.magnitudes.size(); ++d) {
    const double product = border_value(from, border::code_by_bf16, rules, scale);
    weights.push_back(weight_near(from, product, row, d));
  }
  // The scale of each block: the largest number below the limit.
  const std::uint32_t limit =
      static_cast<std::uint32_t>(
          bf16_normal(false, rules.limit_exponent + scale, rules.limit_mantissa) - 1)
      << 16;
  for (std::size_t d = 0; d < weights.size(); d += mxfp4_block) {
    weights[d] = bits_of(float_of(limit) / row.magnitudes[d]);
  }
  return weights;
}

test_case build(const k_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["rms_norm_eps"] = o.way == norm_way::plain    ? epsilons[o.eps]
                                    : o.way == norm_way::passed ? 1.0
                                                                : 0.0;
  made.attributes["compress_ratio"] = o.ratio;
  made.attributes["use_fp4_cache"] = std::int64_t{o.mxfp4 ? 1 : 0};
  made.attributes["shuffle"] = std::int64_t{o.tiled ? 1 : 0};

  const block_rules rules = o.mxfp4 ? e2m1_rules() : e4m3_rules(fp8_format::e4m3fn);
  const std::int64_t block = o.mxfp4 ? mxfp4_block : dims;
  const std::int64_t scale = o.mxfp4 ? 5 : 1;
  rotation_options turning;
  turning.how = o.how;
  turning.dims = rotated;
  turning.rows = o.how == turns::hard ? std::max<std::int64_t>(o.tokens * o.ratio, 1) : 17;
  turning.rules = rules;
  turning.block = mxfp4_block;
  turning.at = border::code_by_bf16;
  turning.scale = scale;
  const rotation turned(from, turning);

  const std::int64_t blocks = (o.tokens + o.tokens / 3) / o.block_size + 2;
  const std::vector<std::int64_t> slots =
      draw_slots(from, o.tokens, blocks * o.block_size, o.slots, o.negative);
  std::vector<std::int64_t> positions = draw_positions(from, slots, turned.rows(), o.ratio);
  if (o.how == turns::hard) {
    // Each token meets pairs of its own.
    for (std::size_t t = 0; t < positions.size(); ++t) {
      positions[t] = static_cast<std::int64_t>(t) * o.ratio + o.ratio - 1;
    }
  }
  if (o.slots == slot_kind::sequential) {
    for (std::size_t t = 0; t < positions.size(); ++t) {
      positions[t] = static_cast<std::int64_t>(t) % turned.rows();
    }
  }

  // Positions of rows past the mapping are not read.
  for (std::int64_t n = o.tokens; n < o.rows; ++n) positions.push_back(2 * (n % 8) + 1);

  // Weights: f32 bits, of which a bf16 tensor takes the upper halves.
  std::vector<std::uint32_t> weights(static_cast<std::size_t>(dims));
  std::vector<std::uint16_t> values(static_cast<std::size_t>(dims));
  std::int64_t number = 0;
  order_row order;
  switch (o.way) {
    case norm_way::plain:
      for (std::uint32_t& w : weights) w = bits_of(draw_factor(from) * 4);
      break;
    case norm_way::passed: {
      const std::uint16_t power = bf16_normal(false, power_of_weights(o), 0);
      for (std::uint32_t& w : weights) w = static_cast<std::uint32_t>(power) << 16;
      break;
    }
    case norm_way::weights:
      number = static_cast<std::int64_t>(from.below(64));
      fill_row(from, o.what, rules, number, values.data(), dims, block);
      for (std::size_t d = 0; d < weights.size(); ++d) {
        weights[d] = static_cast<std::uint32_t>(values[d]) << 16;
      }
      break;
    case norm_way::order:
      order = draw_order_row(from, dims);
      weights = order_weights(from, order, rules, scale);
      break;
  }
  buffer weight = make_buffer("rms_norm_weight", o.f32_weights ? dtype::f32 : dtype::bf16,
                              dense({dims}), o.guard / 4);
  for (std::int64_t d = 0; d < dims; ++d) {
    const std::uint32_t bits = weights[static_cast<std::size_t>(d)];
    std::byte* to = weight.view().element(d);
    if (o.f32_weights) {
      store(to, bits);
    } else {
      store(to, static_cast<std::uint16_t>(bits >> 16));
    }
  }

  buffer k = make_buffer("k_pre", dtype::bf16,
                         {{o.rows, dims}, {dims + o.row_gap, 1}, o.row_gap != 0 ? 8 : 0}, o.guard);
  for (std::int64_t n = 0; n < o.rows; ++n) {
    switch (o.way) {
      case norm_way::plain:
      case norm_way::passed:
        fill_row(from, o.what, rules, number, values.data(), dims, block);
        if (n < o.tokens && o.how == turns::hard) {
          turned.put(positions[static_cast<std::size_t>(n)] / o.ratio * o.ratio,
                     values.data() + dims - rotated);
        }
        if (o.way == norm_way::passed) make_passable(values, power_of_weights(o));
        break;
      case norm_way::weights:
        for (std::uint16_t& v : values) v = bf16_normal(from.one_in(2), 0, 0);
        break;
      case norm_way::order:
        for (std::size_t d = 0; d < values.size(); ++d) {
          values[d] =
              static_cast<std::uint16_t>(bits_of(order.magnitudes[d]) >> 16 | from.below(2) << 15);
        }
        break;
    }
    std::memcpy(k.view().element(n), values.data(), values.size() * 2);
  }

  page_shape pages;
  pages.blocks = blocks;
  pages.block_size = o.block_size;
  pages.row = o.mxfp4 ? 68 : 132;
  pages.page_gap = o.page_gap;
  pages.offset = o.offset;
  pages.guard = o.guard;
  pages.warm = o.warm;
  made.inputs.push_back(std::move(k));
  made.inputs.push_back(integers("positions", positions));
  made.inputs.push_back(
      turned.table("cos_sin_cache", o.bf16_table ? dtype::bf16 : dtype::f32, o.table_gap));
  made.inputs.push_back(std::move(weight));
  made.inputs.push_back(draw_pages(from, "k_cache", dtype::u8, pages));
  made.inputs.push_back(integers("kv_slot_mapping", slots));
  return made;
}

std::string name_of(const k_options& o) {
  constexpr std::string_view ways[] = {"plain", "passed", "weights", "order"};
  std::string name =
      fmt::format("{}_cr{}_n{}_s{}_b{}_{}_{}_{}", o.mxfp4 ? "mxfp4" : "fp8", o.ratio, o.rows,
                  o.tokens, o.block_size, o.way == norm_way::order ? "rows" : name_of(o.what),
                  ways[static_cast<std::size_t>(o.way)], name_of(o.how));
  if (o.tiled) name += "_tiled";
  if (o.bf16_table) name += "_tbf16";
  if (o.f32_weights) name += "_wf32";
  if (o.page_gap != 0) name += fmt::format("_gap{}", o.page_gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.guard != 0) name += "_guard";
  if (o.warm) name += "_warm";
  if (o.negative) name += "_neg";
  if (o.slots == slot_kind::sequential) name += "_seq";
  if (o.slots == slot_kind::all_negative) name += "_allneg";
  if (o.eps != 0) name += fmt::format("_eps{}", o.eps);
  return name;
}

std::vector<std::string> flags_of(const k_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) add_flags(flags, {"EmptyBatch"});
  if (o.tokens > 0 && o.slots != slot_kind::all_negative) {
    if (o.way != norm_way::order) add_flags(flags, flags_of(o.what));
    add_flags(flags, flags_of(o.how));
    if (o.way == norm_way::order) add_flags(flags, {"OrderSensitive"});
  }
  if (o.ratio == 2) add_flags(flags, {"GroupBoundary"});
  if (o.tokens < o.rows) add_flags(flags, {"ShortMapping"});
  if (o.tiled) add_flags(flags, {"Tiled"});
  if (o.bf16_table) add_flags(flags, {"Bf16Table"});
  if (o.f32_weights) add_flags(flags, {"F32Weights"});
  if (o.page_gap != 0) add_flags(flags, {"StridedPage"});
  if (o.offset != 0) add_flags(flags, {"CacheOffset"});
  if (o.row_gap != 0) add_flags(flags, {"Strided"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTable"});
  if (o.offset % 16 != 0 || o.page_gap % 16 != 0 || o.row_gap % 8 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.warm) add_flags(flags, {"WarmCache"});
  if (o.negative && o.tokens > 4) add_flags(flags, {"NegativeSlot"});
  if (o.slots == slot_kind::all_negative) {
    add_flags(flags, {"AllSlotsNegative", "NegativeSlot"});
  }
  if (o.slots == slot_kind::sequential) add_flags(flags, {"SequentialSlots"});
  if (o.block_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.block_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_indexer_k_norm_rope_store_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<k_options> all;
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 128, 256};
  int turn = 0;

  for (const bool mxfp4 : {false, true}) {
    // Each kind of content, before the norm, past it, and from the weights.
    for (const content what : all_contents) {
      for (const std::int64_t ratio : {1, 2}) {
        all.push_back({.rows = 9,
                       .tokens = 8,
                       .block_size = 3,
                       .ratio = ratio,
                       .mxfp4 = mxfp4,
                       .what = what,
                       .bf16_table = ratio == 2,
                       .f32_weights = mxfp4});
        const bool low = is_low(what);
        if (what != content::huge && what != content::infinite) {
          all.push_back({.rows = 3,
                         .tokens = 3,
                         .block_size = 3,
                         .ratio = ratio,
                         .mxfp4 = mxfp4,
                         .what = what,
                         .way = norm_way::passed,
                         .how = turns::exact,
                         .f32_weights = !mxfp4,
                         .from = ratio == 1 && (low || what == content::ties ||
                                                what == content::mixed || what == content::all_nan)
                                     ? level::smoke
                                     : level::acceptance});
        }
        all.push_back({.rows = 2,
                       .tokens = 2,
                       .block_size = 1,
                       .ratio = ratio,
                       .mxfp4 = mxfp4,
                       .what = what,
                       .way = norm_way::weights,
                       .how = turns::exact,
                       .bf16_table = true,
                       .from = ratio == 1 && !low && what != content::ordinary &&
                                       what != content::ties && what != content::all_nan
                                   ? level::smoke
                                   : level::acceptance});
        all.push_back({.rows = 300,
                       .tokens = 300,
                       .block_size = 64,
                       .ratio = ratio,
                       .mxfp4 = mxfp4,
                       .what = what,
                       .way = norm_way::passed,
                       .how = turns::exact,
                       .from = level::exhaustive});
      }
    }
    // Where the order of the sum shows, one row of weights a case; where contraction shows.
    for (std::int64_t rows = 1; rows <= 12; ++rows) {
      all.push_back({.rows = rows,
                     .tokens = rows,
                     .block_size = 3,
                     .mxfp4 = mxfp4,
                     .way = norm_way::order,
                     .how = turns::exact,
                     .f32_weights = true,
                     .from = rows <= 3 ? level::smoke : level::acceptance});
    }
    for (const std::int64_t ratio : {1, 2}) {
      for (const std::int64_t tokens : {12, 40}) {
        all.push_back({.rows = tokens,
                       .tokens = tokens,
                       .block_size = 16,
                       .ratio = ratio,
                       .mxfp4 = mxfp4,
                       .what = content::ordinary,
                       .way = norm_way::passed,
                       .how = turns::hard,
                       .from = tokens == 12 && ratio == 1 ? level::smoke : level::acceptance});
      }
    }
    // Layouts of the cache and of the rows. FP8 pages hold f32 scales: multiples of 4 bytes.
    for (const std::int64_t gap : {0, 16, 1168, 4}) {
      for (const std::int64_t offset : {0, 64, 4}) {
        ++turn;
        const std::int64_t odd = mxfp4 ? 1 : 0;
        all.push_back(
            {.rows = 8 + turn % 3,
             .tokens = 8,
             .block_size = block_sizes[turn % 3],
             .ratio = 1 + turn % 2,
             .mxfp4 = mxfp4,
             .bf16_table = turn % 3 == 0,
             .f32_weights = turn % 2 == 0,
             .page_gap = gap == 4 ? gap + odd : gap,
             .offset = offset == 4 ? offset - odd : offset,
             .guard = (turn % 2) * 48,
             .row_gap = (turn % 4) * 8 - (turn % 5 == 1 ? 3 : 0) + (turn % 4 == 0 ? 3 : 0),
             .table_gap = (turn % 3) * 4,
             .warm = turn % 3 != 0,
             .negative = true,
             .eps = turn % 4,
             .from = gap == 16 && offset != 64 ? level::smoke : level::acceptance});
      }
    }
    // Slots and turns.
    for (const std::int64_t ratio : {1, 2}) {
      all.push_back({.rows = 6,
                     .tokens = 6,
                     .block_size = 3,
                     .ratio = ratio,
                     .mxfp4 = mxfp4,
                     .warm = true,
                     .slots = slot_kind::all_negative,
                     .from = ratio == 1 ? level::smoke : level::acceptance});
      all.push_back({.rows = 3,
                     .tokens = 0,
                     .block_size = 1,
                     .ratio = ratio,
                     .mxfp4 = mxfp4,
                     .from = ratio == 2 ? level::smoke : level::acceptance});
      all.push_back({.rows = 12,
                     .tokens = 12,
                     .block_size = 3,
                     .ratio = ratio,
                     .mxfp4 = mxfp4,
                     .how = turns::any_bits,
                     .from = ratio == 2 ? level::smoke : level::acceptance});
      for (const std::int64_t block_size : block_sizes) {
        all.push_back({.rows = 20,
                       .tokens = 19,
                       .block_size = block_size,
                       .ratio = ratio,
                       .mxfp4 = mxfp4,
                       .slots = slot_kind::sequential,
                       .from = block_size == 3 && ratio == 2 ? level::smoke : level::acceptance});
      }
    }
    all.push_back({.rows = 0, .tokens = 0, .mxfp4 = mxfp4});
    // Batch sizes around those where launches change.
    for (const std::int64_t tokens : {1, 2, 8, 64, 128, 1023, 1024}) {
      for (const std::int64_t block_size : {std::int64_t{3}, std::int64_t{64}, std::int64_t{256}}) {
        ++turn;
        all.push_back(
            {.rows = tokens + turn % 3,
             .tokens = tokens,
             .block_size = block_size,
             .ratio = 1 + turn % 2,
             .mxfp4 = mxfp4,
             .page_gap = (turn % 3) * 48,
             .negative = turn % 2 == 0 && tokens > 4,
             .from = tokens > 1000 && block_size != 64 ? level::exhaustive : level::acceptance});
      }
    }
  }
  // Tiles.
  for (const std::int64_t block_size : {16, 32, 64, 256}) {
    for (const std::int64_t tokens : {5, 40}) {
      ++turn;
      all.push_back({.rows = tokens + 1,
                     .tokens = tokens,
                     .block_size = block_size,
                     .ratio = 1 + turn % 2,
                     .tiled = true,
                     .page_gap = (turn % 2) * 64,
                     .warm = turn % 2 == 1,
                     .negative = true,
                     .from = block_size == 16 && tokens == 5 ? level::smoke : level::acceptance});
    }
  }
  // Pages of every form at multiples of 8 bytes, tables and weights of both types; long batches.
  for (const bool tiled : {false, true}) {
    for (const std::int64_t ratio : {1, 2}) {
      for (const bool f32 : {false, true}) {
        all.push_back({.rows = 19,
                       .tokens = 19,
                       .block_size = 16,
                       .ratio = ratio,
                       .tiled = tiled,
                       .bf16_table = f32 == (ratio == 1),
                       .f32_weights = f32,
                       .warm = true,
                       .negative = true});
      }
      all.push_back({.rows = 4099,
                     .tokens = 4099,
                     .block_size = 64,
                     .ratio = ratio,
                     .tiled = tiled,
                     .f32_weights = tiled,
                     .negative = true});
    }
  }
  for (const std::int64_t ratio : {1, 2}) {
    all.push_back({.rows = 4099,
                   .tokens = 4099,
                   .block_size = 64,
                   .ratio = ratio,
                   .mxfp4 = true,
                   .bf16_table = ratio == 2,
                   .negative = true});
  }
  // Tiles at multiples of 4 bytes only.
  for (const std::int64_t ratio : {1, 2}) {
    all.push_back({.rows = 64,
                   .tokens = 64,
                   .block_size = 32,
                   .ratio = ratio,
                   .tiled = true,
                   .page_gap = 12,
                   .offset = 4,
                   .row_gap = 5,
                   .warm = true});
  }

  add_specs(
      to, kernel, seed, all, [](const k_options& o) { return name_of(o); },
      [](const k_options& o) { return flags_of(o); },
      [](const k_options& o, const std::string& name, std::uint64_t s) {
        return build(o, name, s);
      });
}

}  // namespace kvcts
