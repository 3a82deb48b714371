// Cases of rope_quant_insert: latent [N, 512] bf16 into pages of one of five records.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/build.h"
#include "conformance/cases/rotation.h"
#include "conformance/cases/slots.h"
#include "reference/formats/bf16.h"
#include "reference/numerics/arithmetic.h"
#include "reference/numerics/mufu.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "rope_quant_insert";
constexpr std::int64_t dims = 512, rotated = 64;

enum class record : std::uint8_t { v4, mxfp8, nvfp4, bf16, fp8 };

struct latent_options {
  std::int64_t rows = 0, tokens = 0;  // N, S
  std::int64_t block_size = 16, ratio = 1;
  record to = record::v4;
  content what = content::mixed;
  turns how = turns::drawn;
  bool scale_ties = false;  // NVFP4: amax / 6 at and beside the midpoint of two scales
  bool bf16_table = false;
  std::int64_t page_gap = 0, entry_gap = 0, offset = 0, guard = 0;  // elements of the cache
  std::int64_t row_gap = 0, table_gap = 0;
  bool warm = false, negative = false;
  slot_kind slots = slot_kind::shuffled;
  int fp8_scale = 0;          // of the table below
  bool idle_scale = false;    // fp8_scale is there though the record has none
  bool inverse_ties = false;  // FP8: the exact inverse of fp8_scale puts values on one side of a
                              // tie of two codes, the approximate one on the other
  level from = level::acceptance;
};

// f32 bits: 1, 1/8, a number whose reciprocal rounds, a subnormal, 2^127, -0.5, 0, infinity, NaN.
constexpr std::uint32_t fp8_scales[] = {0x3F800000, 0x3E000000, 0x3C54FDF4, 0x00200000, 0x7F000000,
                                        0xBF000000, 0x00000000, 0x7F800000, 0x7FC00000};

struct record_rules {
  std::string_view name;
  dtype type;
  std::int64_t elements;  // of an entry
  std::int64_t block;     // dims that share a scale
  border at;
  std::int64_t scale;  // of borders
};
record_rules rules_of(record to) {
  switch (to) {
    case record::v4:
      return {"v4", dtype::u8, 584, 64, border::bf16, 1};
    case record::mxfp8:
      return {"v41_mxfp8", dtype::u8, 528, 32, border::code, 1};
    case record::nvfp4:
      return {"v41_nvfp4", dtype::u8, 288, 16, border::code, 5};
    case record::bf16:
      return {"bf16", dtype::bf16, 512, 64, border::bf16, 1};
    case record::fp8:
      break;
  }
  return {"fp8", dtype::f8e4m3fn, 512, 64, border::code_by_bf16, 0};
}

block_rules blocks_of(const latent_options& o) {
  if (o.to == record::nvfp4) return nvfp4_rules();
  block_rules rules = e4m3_rules(fp8_format::e4m3fn);
  if (o.to == record::fp8) {
    // One scale for all: borders lie at that one.
    rules.highest_scale = o.fp8_scale == 1 ? -3 : 0;
    rules.lowest_scale = rules.highest_scale - 1;
  }
  return rules;
}

// 6 times the midpoints of two E4M3 scales: at most 7 significant bits.
std::uint16_t scale_tie(draw& from) {
  const block_rules scales = e4m3_rules(fp8_format::e4m3fn);
  return bf16_scaled(6 * scales.ties[from.below(scales.ties.size())], scales.tie_exponent);
}

void fill_scale_ties(draw& from, std::vector<std::uint16_t>& values, std::int64_t block) {
  for (std::size_t first = 0; first < values.size(); first += static_cast<std::size_t>(block)) {
    const auto amax = static_cast<std::uint16_t>(scale_tie(from) + from.between(-1, 1));
    for (std::int64_t i = 0; i < block; ++i) {
      const std::int64_t down = std::max<std::int64_t>(amax - from.between(0, 4 * 128), 0);
      values[first + static_cast<std::size_t>(i)] =
          static_cast<std::uint16_t>(down | from.below(2) << 15);
    }
    values[first + from.below(static_cast<std::uint64_t>(block))] = amax;
  }
}

struct inverse_tie {
  float scale;
  std::uint16_t value;
};
inverse_tie draw_inverse_tie(draw& from) {
  for (;;) {
    const std::uint16_t value = bf16_normal(false, from.between(0, 3), from.below(128));
    const float x = decode_bf16(value);
    const float tie = 1.0F + static_cast<float>(2 * from.below(8) + 1) / 16.0F;
    const float scale = float_of(bits_of(true_div(x, tie)) + from.below(5) - 2);
    const float exact = mul(x, true_div(1.0F, scale));
    const float approximate = mul(x, div_full(1.0F, scale));
    if (encode_e4m3fn(exact) != encode_e4m3fn(approximate)) return {scale, value};
  }
}

test_case build(const latent_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  const record_rules record = rules_of(o.to);
  test_case made;
  made.attributes["compress_ratio"] = o.ratio;
  made.attributes["record"] = std::string(record.name);

  const bool own_pairs = o.how == turns::hard || o.how == turns::window;
  rotation_options turning;
  turning.how = o.how;
  turning.dims = rotated;
  turning.rows = own_pairs ? std::max<std::int64_t>(o.tokens * o.ratio, 1) : 17;
  turning.rules = blocks_of(o);
  turning.block = std::min<std::int64_t>(record.block, 32);
  turning.at = record.at;
  turning.scale = o.to == record::fp8 ? turning.rules.highest_scale : record.scale;
  if (o.to == record::nvfp4) {
    for (int i = 0; i < 64; ++i) {
      turning.amaxes.push_back(static_cast<std::uint32_t>(scale_tie(from)) << 16);
    }
  }
  const rotation turned(from, turning);

  const std::int64_t blocks = (o.tokens + o.tokens / 4) / o.block_size + 1;
  const std::vector<std::int64_t> slots =
      draw_slots(from, o.tokens, blocks * o.block_size, o.slots, o.negative);
  std::vector<std::int64_t> positions = draw_positions(from, slots, turned.rows(), o.ratio);
  for (std::size_t t = 0; t < positions.size(); ++t) {
    const auto token = static_cast<std::int64_t>(t);
    if (own_pairs) positions[t] = token * o.ratio + o.ratio - 1;
    if (o.slots == slot_kind::sequential) positions[t] = token % turned.rows();
  }

  // Positions of rows past the mapping are not read.
  for (std::int64_t n = o.tokens; n < o.rows; ++n) positions.push_back(2 * (n % 8) + 1);

  buffer latent =
      make_buffer("latent", dtype::bf16,
                  {{o.rows, dims}, {dims + o.row_gap, 1}, o.row_gap != 0 ? 8 : 0}, o.guard);
  std::int64_t number = 0;
  std::vector<std::uint16_t> values(static_cast<std::size_t>(dims));
  std::uint32_t fp8_scale = fp8_scales[o.fp8_scale];
  for (std::int64_t n = 0; n < o.rows; ++n) {
    if (o.inverse_ties) {
      // One scale a call: every row has the same value, of both signs.
      if (n == 0) {
        const inverse_tie drawn = draw_inverse_tie(from);
        fp8_scale = bits_of(drawn.scale);
        for (std::uint16_t& v : values) {
          v = static_cast<std::uint16_t>(drawn.value | from.below(2) << 15);
        }
      }
    } else if (o.scale_ties) {
      fill_scale_ties(from, values, record.block);
    } else {
      fill_row(from, o.what, turning.rules, number, values.data(), dims, record.block);
    }
    if (own_pairs && n < o.tokens) {
      turned.put(positions[static_cast<std::size_t>(n)] / o.ratio * o.ratio,
                 values.data() + dims - rotated);
    }
    std::memcpy(latent.view().element(n), values.data(), values.size() * 2);
  }

  page_shape pages;
  pages.blocks = blocks;
  pages.block_size = o.block_size;
  pages.row = record.elements;
  pages.entry_gap = o.entry_gap;
  pages.page_gap = o.page_gap;
  pages.offset = o.offset;
  pages.guard = o.guard;
  pages.warm = o.warm;
  made.inputs.push_back(std::move(latent));
  made.inputs.push_back(integers("positions", positions));
  made.inputs.push_back(
      turned.table("cos_sin_cache", o.bf16_table ? dtype::bf16 : dtype::f32, o.table_gap));
  made.inputs.push_back(draw_pages(from, "kv_cache", record.type, pages));
  made.inputs.push_back(integers("slot_mapping", slots));
  if (o.to == record::fp8 || o.idle_scale) {
    buffer scale = make_buffer("fp8_scale", dtype::f32, dense({1}));
    store(scale.view().element(0), fp8_scale);
    made.inputs.push_back(std::move(scale));
  }
  return made;
}

std::string name_of(const latent_options& o) {
  std::string name =
      fmt::format("{}_cr{}_n{}_s{}_b{}_{}_{}", rules_of(o.to).name, o.ratio, o.rows, o.tokens,
                  o.block_size, o.scale_ties ? "scaleties" : name_of(o.what), name_of(o.how));
  if (o.fp8_scale != 0) name += fmt::format("_scale{}", o.fp8_scale);
  if (o.inverse_ties) name += "_inverse";
  if (o.idle_scale) name += "_idlescale";
  if (o.bf16_table) name += "_tbf16";
  if (o.page_gap != 0) name += fmt::format("_gap{}", o.page_gap);
  if (o.entry_gap != 0) name += fmt::format("_entry{}", o.entry_gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.guard != 0) name += "_guard";
  if (o.warm) name += "_warm";
  if (o.negative) name += "_neg";
  if (o.slots == slot_kind::sequential) name += "_seq";
  if (o.slots == slot_kind::all_negative) name += "_allneg";
  return name;
}

std::vector<std::string> flags_of(const latent_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) add_flags(flags, {"EmptyBatch"});
  if (o.tokens > 0 && o.slots != slot_kind::all_negative) {
    if (!o.scale_ties) add_flags(flags, flags_of(o.what));
    if (o.scale_ties || (o.to == record::nvfp4 && o.how == turns::window)) {
      add_flags(flags, {"ScaleTie"});
    } else {
      add_flags(flags, flags_of(o.how));
    }
  }
  if (o.ratio == 2) add_flags(flags, {"GroupBoundary"});
  if (o.fp8_scale != 0 || o.inverse_ties) add_flags(flags, {"TensorScale"});
  if (o.tokens < o.rows) add_flags(flags, {"ShortMapping"});
  if (o.bf16_table) add_flags(flags, {"Bf16Table"});
  if (o.page_gap != 0) add_flags(flags, {"StridedPage"});
  if (o.entry_gap != 0) add_flags(flags, {"StridedEntry"});
  if (o.offset != 0) add_flags(flags, {"CacheOffset"});
  if (o.row_gap != 0) add_flags(flags, {"Strided"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTable"});
  if (o.offset % 16 != 0 || o.page_gap % 16 != 0 || o.entry_gap % 16 != 0 || o.row_gap % 8 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.warm) add_flags(flags, {"WarmCache"});
  if (o.negative && o.tokens > 4) add_flags(flags, {"NegativeSlot"});
  if (o.slots == slot_kind::all_negative) add_flags(flags, {"AllSlotsNegative", "NegativeSlot"});
  if (o.slots == slot_kind::sequential) add_flags(flags, {"SequentialSlots"});
  if (o.block_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.block_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

// Layouts, slots and sizes of one record.
void add_shapes(std::vector<latent_options>& all, record to, int& turn) {
  const bool plain = to == record::bf16 || to == record::fp8;
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 128, 256};
  for (const std::int64_t gap : {0, 16, 1168, 5}) {
    for (const std::int64_t offset : {0, 64, 3}) {
      ++turn;
      all.push_back({.rows = 6 + turn % 3,
                     .tokens = 6,
                     .block_size = block_sizes[turn % 3],
                     .ratio = 1 + turn % 2,
                     .to = to,
                     .bf16_table = turn % 3 == 0,
                     .page_gap = gap,
                     .entry_gap = !plain     ? 0
                                  : gap == 5 ? 11
                                             : turn % 3 * 8,
                     .offset = offset,
                     .guard = (turn % 2) * 48,
                     .row_gap = (turn % 4) * 8 - (turn % 5 == 1 ? 3 : 0) + (turn % 4 == 0 ? 3 : 0),
                     .table_gap = gap == 5 ? 4 : turn % 3 * 8,
                     .warm = turn % 3 != 0 || gap == 5,
                     .negative = true,
                     .from = gap == 5 && offset == 3 ? level::smoke : level::acceptance});
    }
  }
  all.push_back({.rows = 2,
                 .tokens = 2,
                 .block_size = 1,
                 .to = to,
                 .how = turns::any_bits,
                 .from = level::smoke});
  for (const std::int64_t ratio : {1, 2}) {
    const bool chosen = to == record::nvfp4 && ratio == 2;
    all.push_back({.rows = 4,
                   .tokens = 4,
                   .block_size = 3,
                   .ratio = ratio,
                   .to = to,
                   .warm = true,
                   .slots = slot_kind::all_negative,
                   .from = chosen ? level::smoke : level::acceptance});
    all.push_back({.rows = 2,
                   .tokens = 0,
                   .block_size = 1,
                   .ratio = ratio,
                   .to = to,
                   .from = chosen ? level::smoke : level::acceptance});
    all.push_back({.rows = 20,
                   .tokens = 20,
                   .block_size = 3,
                   .ratio = ratio,
                   .to = to,
                   .how = turns::any_bits});
    for (const std::int64_t block_size : block_sizes) {
      all.push_back({.rows = 12,
                     .tokens = 11,
                     .block_size = block_size,
                     .ratio = ratio,
                     .to = to,
                     .slots = slot_kind::sequential,
                     .from = block_size > 64             ? level::exhaustive
                             : block_size == 3 && chosen ? level::smoke
                                                         : level::acceptance});
    }
  }
  all.push_back({.rows = 0, .tokens = 0, .to = to});
  if (!plain) all.push_back({.rows = 3, .tokens = 3, .to = to, .idle_scale = true});
  for (const std::int64_t tokens : {1, 2, 8, 64, 128, 1023, 1024}) {
    for (const std::int64_t block_size : {3, 64, 256}) {
      ++turn;
      all.push_back({.rows = tokens + turn % 3,
                     .tokens = tokens,
                     .block_size = block_size,
                     .ratio = 1 + turn % 2,
                     .to = to,
                     .page_gap = (turn % 3) * 48,
                     .negative = turn % 2 == 0 && tokens > 4,
                     .from = tokens > 1000 && (block_size != 64 || tokens % 2 != turn % 2)
                                 ? level::exhaustive
                                 : level::acceptance});
    }
  }
}

}  // namespace

void add_rope_quant_insert_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<latent_options> all;
  int turn = 0;
  for (const record target :
       {record::v4, record::mxfp8, record::nvfp4, record::bf16, record::fp8}) {
    const bool plain = target == record::bf16 || target == record::fp8;
    // Each kind of content, passed through and turned.
    for (const content what : all_contents) {
      const bool in_smoke =
          what == content::mixed || what == content::ties ||
          (!plain && (what == content::zero || what == content::infinite)) ||
          (target == record::v4 &&
           (what == content::any_bits || what == content::powers || what == content::distinct ||
            what == content::huge || what == content::all_nan)) ||
          (target == record::nvfp4 && (what == content::floor || what == content::subnormal)) ||
          (target == record::mxfp8 &&
           (what == content::floor || what == content::boundary || what == content::exact_scale));
      all.push_back({.rows = 2,
                     .tokens = 2,
                     .block_size = 1,
                     .to = target,
                     .what = what,
                     .how = turns::exact,
                     .bf16_table = true,
                     .from = in_smoke ? level::smoke : level::acceptance});
      all.push_back(
          {.rows = 8, .tokens = 8, .block_size = 3, .ratio = 2, .to = target, .what = what});
      all.push_back({.rows = 128,
                     .tokens = 128,
                     .block_size = 64,
                     .to = target,
                     .what = what,
                     .how = turns::exact,
                     .from = level::exhaustive});
    }
    // Where the order of rounding shows, and where a scale turns.
    for (const std::int64_t ratio : {1, 2}) {
      for (const std::int64_t tokens : {5, 24}) {
        const level from = tokens == 5 && ratio == 1 ? level::smoke : level::acceptance;
        all.push_back({.rows = tokens,
                       .tokens = tokens,
                       .block_size = 3,
                       .ratio = ratio,
                       .to = target,
                       .what = content::ordinary,
                       .how = turns::hard,
                       .from = from});
        if (target == record::mxfp8 || target == record::nvfp4) {
          all.push_back({.rows = tokens,
                         .tokens = tokens,
                         .block_size = 3,
                         .ratio = ratio,
                         .to = target,
                         .what = content::ordinary,
                         .how = turns::window,
                         .from = from});
        }
      }
    }
    add_shapes(all, target, turn);
  }
  for (const std::int64_t tokens : {3, 40}) {
    all.push_back({.rows = tokens,
                   .tokens = tokens,
                   .block_size = 1,
                   .to = record::nvfp4,
                   .how = turns::exact,
                   .scale_ties = true,
                   .from = tokens == 3 ? level::smoke : level::acceptance});
  }
  for (int scale = 1; scale < static_cast<int>(std::size(fp8_scales)); ++scale) {
    for (const turns how : {turns::exact, turns::hard, turns::drawn}) {
      all.push_back({.rows = how == turns::exact ? 2 : 9,
                     .tokens = how == turns::exact ? 2 : 9,
                     .block_size = 1,
                     .to = record::fp8,
                     .how = how,
                     .fp8_scale = scale,
                     .from = how == turns::exact && scale < 4 ? level::smoke : level::acceptance});
    }
  }

  all.push_back({.rows = 1,
                 .tokens = 1,
                 .block_size = 1,
                 .to = record::fp8,
                 .what = content::ordinary,
                 .how = turns::exact,
                 .inverse_ties = true,
                 .from = level::smoke});
  // Batches past those at which launchers give a warp more rows.
  for (const record target : {record::v4, record::mxfp8, record::nvfp4}) {
    // Rows without infinities and NaNs, which mixed ones hardly are, may be other code.
    for (const content what : {content::mixed, content::any_bits, content::ties}) {
      const std::int64_t ratio = what == content::ties ? 2 : 1;
      all.push_back({.rows = 2113 + ratio,
                     .tokens = 2113,
                     .block_size = ratio == 1 ? 64 : 16,
                     .ratio = ratio,
                     .to = target,
                     .what = what,
                     .bf16_table = (target == record::mxfp8) == (what == content::mixed),
                     .page_gap = 16 * (2 - ratio),
                     .negative = true});
    }
    for (const std::int64_t tokens : {1057, 2111, 4100}) {
      ++turn;
      all.push_back({.rows = tokens + turn % 3,
                     .tokens = tokens,
                     .block_size = turn % 2 == 0 ? 64 : 16,
                     .ratio = 1 + turn % 2,
                     .to = target,
                     .how = tokens == 2111 ? turns::hard : turns::drawn,
                     .bf16_table = turn % 2 == 0,
                     .page_gap = turn % 3 * 48,
                     .negative = turn % 2 == 1,
                     .from = level::exhaustive});
    }
  }

  add_specs(
      to, kernel, seed, all, [](const latent_options& o) { return name_of(o); },
      [](const latent_options& o) { return flags_of(o); },
      [](const latent_options& o, const std::string& name, std::uint64_t s) {
        return build(o, name, s);
      });
}

}  // namespace kvcts
