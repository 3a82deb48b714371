// Cases of fused_indexer_q_rope_quant: index_q [T, H, D] bf16, to FP8 or MXFP4.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/build.h"
#include "conformance/cases/rotation.h"
#include "conformance/cases/slots.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "fused_indexer_q_rope_quant";
constexpr std::int64_t mxfp4_block = 32;

enum class q_layout : std::uint8_t { dense, strided, unaligned, head_major };
enum class q_format : std::uint8_t { fp8, fnuz, mxfp4 };

struct q_options {
  std::int64_t tokens = 0, heads = 1, dims = 128, rotated = 64;
  q_format format = q_format::fp8;
  content what = content::mixed;
  turns how = turns::drawn;
  q_layout layout = q_layout::dense;
  bool bf16_table = false;
  bool f32_weights = false;
  bool bf16_out = false;       // MXFP4 only
  std::int64_t table_gap = 0;  // elements between the rows of the table
  std::int64_t weight_gap = 0;
  std::int64_t guard = 0;
  int factors = 0;           // of the table below
  bool weight_ties = false;  // weights midway between two bf16 numbers, subnormal ones too
  level from = level::acceptance;
};

// Softmax and head scale. Doubles, as callers pass them: not f32 numbers, a tie of two, some whose
// order of multiplication decides between a number and 0 or an infinity, negative, zero.
struct factor_pair {
  double softmax, head;
};
constexpr factor_pair factors[] = {
    {0.08838834764831845, 0.125}, {1.0, 1.0}, {0x1.000003p0, 0.3}, {1e-38, 1e38}, {3e38, 1e-30},
    {-0.3, 0x1.8p-130},           {0.7, 0.0}};

extent query_extent(const q_options& o) {
  const std::vector<std::int64_t> shape = {o.tokens, o.heads, o.dims};
  switch (o.layout) {
    case q_layout::dense:
      return dense(shape);
    case q_layout::strided:
      return {shape, {o.heads * (o.dims + 16) + 64, o.dims + 16, 1}, 32};
    case q_layout::unaligned:
      return {shape, {o.heads * (o.dims + 3) + 5, o.dims + 3, 1}, 3};
    case q_layout::head_major:
      return {shape, {o.dims, o.tokens * o.dims + 16, 1}, 8};
  }
  return {};
}

rotation_options rotation_of(const q_options& o, const block_rules& rules) {
  rotation_options made;
  made.how = o.how;
  made.dims = o.rotated;
  made.rows = o.how == turns::hard ? o.tokens + 1 : 17;
  made.rules = rules;
  made.block = mxfp4_block;
  made.at = border::code_by_bf16;
  made.scale = o.format == q_format::mxfp4 ? 5 : 1;
  return made;
}

test_case build(const q_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  const bool mxfp4 = o.format == q_format::mxfp4;
  const bool fnuz = o.format == q_format::fnuz;
  test_case made;
  made.attributes["index_weights_softmax_scale"] = factors[o.factors].softmax;
  made.attributes["index_weights_head_scale"] = factors[o.factors].head;
  made.attributes["use_fp4"] = std::int64_t{mxfp4 ? 1 : 0};
  made.attributes["weights_out_dtype"] = std::string(o.bf16_out ? "bf16" : "f32");
  made.attributes["fp8_format"] = std::string(fnuz ? "e4m3fnuz" : "e4m3fn");

  const block_rules rules =
      mxfp4 ? e2m1_rules() : e4m3_rules(fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);
  const rotation turned(from, rotation_of(o, rules));
  std::vector<std::int64_t> positions(static_cast<std::size_t>(o.tokens));
  for (std::int64_t& p : positions) p = from.between(0, turned.rows() - 1);
  if (o.how == turns::hard) {
    // Each token meets pairs of its own.
    for (std::size_t t = 0; t < positions.size(); ++t) positions[t] = static_cast<std::int64_t>(t);
  }
  if (o.tokens > 0) positions.front() = 0;
  if (o.tokens > 1) positions.back() = turned.rows() - 1;

  buffer q = make_buffer("index_q", dtype::bf16, query_extent(o), o.guard);
  std::int64_t number = 0;
  std::vector<std::uint16_t> values(static_cast<std::size_t>(o.dims));
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    for (std::int64_t h = 0; h < o.heads; ++h) {
      fill_row(from, o.what, rules, number, values.data(), o.dims, mxfp4 ? mxfp4_block : o.dims);
      turned.put(positions[static_cast<std::size_t>(t)], values.data() + o.dims - o.rotated);
      std::memcpy(q.view().element(t, h), values.data(), values.size() * 2);
    }
  }

  buffer weights = make_buffer("index_weights", o.f32_weights ? dtype::f32 : dtype::bf16,
                               {{o.tokens, o.heads}, {o.heads + o.weight_gap, 1}, 0}, o.guard);
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    for (std::int64_t h = 0; h < o.heads; ++h) {
      std::uint32_t bits = any_f32(from);
      if (o.weight_ties) {
        bits = (bits & (from.one_in(3) ? 0x807FFFFF : 0xBFFFFFFF) & 0xFFFF0000) | 0x8000;
      }
      std::byte* to = weights.view().element(t, h);
      if (o.f32_weights) {
        store(to, bits);
      } else {
        store(to, static_cast<std::uint16_t>(bits >> 16));
      }
    }
  }
  made.inputs.push_back(integers("positions", positions));
  made.inputs.push_back(std::move(q));
  made.inputs.push_back(
      turned.table("index_q_cos_sin_cache", o.bf16_table ? dtype::bf16 : dtype::f32, o.table_gap));
  made.inputs.push_back(std::move(weights));
  return made;
}

std::string name_of(const q_options& o) {
  constexpr std::string_view formats[] = {"fp8", "fnuz", "mxfp4"};
  std::string name =
      fmt::format("{}_t{}_h{}_d{}_r{}_{}_{}", formats[static_cast<std::size_t>(o.format)], o.tokens,
                  o.heads, o.dims, o.rotated, name_of(o.what), name_of(o.how));
  if (o.layout == q_layout::strided) name += "_strided";
  if (o.layout == q_layout::unaligned) name += "_unaligned";
  if (o.layout == q_layout::head_major) name += "_headmajor";
  if (o.bf16_table) name += "_tbf16";
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.f32_weights) name += "_wf32";
  if (o.bf16_out) name += "_obf16";
  if (o.weight_gap != 0) name += fmt::format("_wgap{}", o.weight_gap);
  if (o.factors != 0) name += fmt::format("_f{}", o.factors);
  if (o.weight_ties) name += "_wties";
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of(const q_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) {
    add_flags(flags, {"EmptyBatch"});
  } else {
    add_flags(flags, flags_of(o.what));
    add_flags(flags, flags_of(o.how));
  }
  if (o.format == q_format::fnuz) add_flags(flags, {"Fnuz"});
  if ((o.heads & (o.heads - 1)) != 0) add_flags(flags, {"OddHeads"});
  if (o.layout != q_layout::dense) add_flags(flags, {"Strided"});
  if (o.layout == q_layout::unaligned) add_flags(flags, {"Unaligned"});
  if (o.layout == q_layout::head_major) add_flags(flags, {"HeadMajor"});
  if (o.bf16_table) add_flags(flags, {"Bf16Table"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTable"});
  if (o.f32_weights) add_flags(flags, {"F32Weights"});
  if (o.bf16_out) add_flags(flags, {"Bf16WeightsOut"});
  if (o.weight_gap != 0) add_flags(flags, {"StridedWeights"});
  if (o.factors != 0) add_flags(flags, {"WeightScale"});
  if (o.weight_ties) add_flags(flags, {"TieToEven"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.dims % 32 != 0) add_flags(flags, {"OddWidth"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_fused_indexer_q_rope_quant_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<q_options> all;
  constexpr q_format formats[] = {q_format::fp8, q_format::fnuz, q_format::mxfp4};

  for (const q_format format : formats) {
    const bool mxfp4 = format == q_format::mxfp4;
    const bool fnuz = format == q_format::fnuz;
    // Each kind of content, passed through and turned.
    for (const content what : all_contents) {
      const bool in_smoke = what == content::ties || what == content::mixed ||
                            (!fnuz && what != content::ordinary &&
                             (mxfp4 || (what != content::powers && what != content::distinct)));
      all.push_back({.tokens = 3,
                     .heads = 1,
                     .format = format,
                     .what = what,
                     .how = turns::exact,
                     .bf16_table = true,
                     .from = in_smoke ? level::smoke : level::acceptance});
      all.push_back({.tokens = 5, .heads = 5, .format = format, .what = what, .f32_weights = true});
      all.push_back(
          {.tokens = 64, .heads = 16, .format = format, .what = what, .from = level::exhaustive});
    }
    // Where the order of rounding shows.
    for (const std::int64_t tokens : {12, 16, 40}) {
      all.push_back({.tokens = tokens,
                     .heads = tokens / 12,
                     .format = format,
                     .what = content::ordinary,
                     .how = turns::hard,
                     .from = tokens == 12 ? level::smoke : level::acceptance});
    }
    // Widths: all dims rotated, a few, none; not a multiple of anything in FP8.
    struct width {
      std::int64_t dims, rotated;
    };
    constexpr width mxfp4_widths[] = {{32, 32},  {64, 0},   {96, 2},   {128, 128},
                                      {160, 96}, {512, 64}, {576, 64}, {1024, 1024}};
    constexpr width fp8_widths[] = {{1, 0},   {2, 2},   {33, 32},  {80, 6},
                                    {128, 0}, {200, 8}, {577, 64}, {1024, 1024}};
    for (const width& w : mxfp4 ? mxfp4_widths : fp8_widths) {
      const bool small = w.dims == 33 || w.dims == 96;
      all.push_back({.tokens = 5,
                     .heads = 2,
                     .dims = w.dims,
                     .rotated = w.rotated,
                     .format = format,
                     .from = small ? level::smoke : level::acceptance});
      all.push_back({.tokens = 9,
                     .heads = 3,
                     .dims = w.dims,
                     .rotated = w.rotated,
                     .format = format,
                     .how = turns::exact,
                     .layout = q_layout::strided,
                     .table_gap = 4});
    }
    // Layouts and heads.
    int turn = 0;
    for (const q_layout layout :
         {q_layout::dense, q_layout::strided, q_layout::unaligned, q_layout::head_major}) {
      for (const std::int64_t heads : {1, 3, 9, 33}) {
        ++turn;
        all.push_back({.tokens = 4,
                       .heads = heads,
                       .format = format,
                       .how = turn % 5 == 0 ? turns::any_bits : turns::drawn,
                       .layout = layout,
                       .bf16_table = turn % 2 == 0,
                       .f32_weights = turn % 3 == 0,
                       .bf16_out = mxfp4 && turn % 3 == 1,
                       .table_gap = (turn % 3) * 12,
                       .weight_gap = turn % 4,
                       .guard = (turn % 3) * 8,
                       .from = heads == 3 && mxfp4 ? level::smoke : level::acceptance});
      }
    }
    all.push_back({.tokens = 8,
                   .heads = 3,
                   .format = format,
                   .how = turns::any_bits,
                   .from = fnuz ? level::acceptance : level::smoke});
    // More heads than 64, which 8 warps of 8 take at once.
    for (const std::int64_t heads : {65, 150}) {
      all.push_back({.tokens = 2, .heads = heads, .format = format, .f32_weights = heads == 150});
    }
    // More heads than launchers give a block each, and than a warp has in hand.
    all.push_back({.tokens = 3, .heads = 11, .dims = 32, .rotated = 8, .format = format});
    if (!fnuz) {
      all.push_back({.tokens = 131,
                     .heads = 65,
                     .format = format,
                     .bf16_table = true,
                     .f32_weights = mxfp4,
                     .bf16_out = mxfp4});
      // So many that launchers' blocks take several tokens in turn. Heads without infinities and
      // NaNs, which mixed ones hardly are, may be other code.
      if (mxfp4) all.push_back({.tokens = 613, .heads = 67, .format = format});
      for (const std::int64_t tokens : {2201, 4225}) {
        all.push_back({.tokens = tokens,
                       .heads = 35,
                       .format = format,
                       .what = mxfp4 ? content::any_bits : content::mixed,
                       .bf16_table = mxfp4,
                       .f32_weights = !mxfp4,
                       .from = tokens == 2201 ? level::acceptance : level::exhaustive});
      }
    }
    // Factors of the weights.
    for (int pair = 1; pair < static_cast<int>(std::size(factors)); ++pair) {
      all.push_back({.tokens = 16,
                     .heads = 8,
                     .dims = 32,
                     .rotated = 2,
                     .format = format,
                     .f32_weights = pair % 2 == 0,
                     .bf16_out = mxfp4 && pair % 3 != 0,
                     .factors = pair,
                     .from = !fnuz && (pair == 3 || pair == 4) ? level::smoke : level::acceptance});
    }
    // Work for a whole device, several tokens a multiprocessor in turn: 64 heads, more, fewer, and
    // blocks that are all finite.
    if (!fnuz) {
      constexpr std::int64_t many = 1900;
      all.push_back({.tokens = many,
                     .heads = 64,
                     .format = format,
                     .what = content::any_bits,
                     .from = level::exhaustive});
      all.push_back({.tokens = many, .heads = 70, .format = format, .from = level::exhaustive});
      all.push_back({.tokens = many,
                     .heads = 40,
                     .format = format,
                     .what = content::ties,
                     .bf16_table = true,
                     .f32_weights = true,
                     .bf16_out = mxfp4,
                     .from = level::exhaustive});
    }
    // Batch sizes around those where launches change.
    for (const std::int64_t tokens : {0, 1, 2, 8, 64, 128, 1023, 1024}) {
      const bool large = tokens > 1000;
      for (const std::int64_t heads : {1, 5, 64}) {
        ++turn;
        all.push_back({.tokens = tokens,
                       .heads = heads,
                       .dims = large ? 32 : 128,
                       .rotated = large ? 8 : 64,
                       .format = format,
                       .bf16_table = turn % 2 == 0,
                       .f32_weights = turn % 2 == 1,
                       .from = tokens == 0 && heads == 5  ? level::smoke
                               : tokens * heads > 8 * 128 ? level::exhaustive
                                                          : level::acceptance});
      }
    }
  }

  // More than 32 tokens a block of a device of 148 multiprocessors with four blocks each.
  all.push_back({.tokens = 20000,
                 .heads = 33,
                 .format = q_format::mxfp4,
                 .what = content::ordinary,
                 .from = level::exhaustive});
  all.push_back({.tokens = 8,
                 .heads = 8,
                 .dims = 32,
                 .rotated = 2,
                 .format = q_format::mxfp4,
                 .f32_weights = true,
                 .bf16_out = true,
                 .factors = 1,
                 .weight_ties = true,
                 .from = level::smoke});

  add_specs(
      to, kernel, seed, all, [](const q_options& o) { return name_of(o); },
      [](const q_options& o) { return flags_of(o); },
      [](const q_options& o, const std::string& name, std::uint64_t s) {
        return build(o, name, s);
      });
}

}  // namespace kvcts
