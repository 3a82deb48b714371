// Cases of fused_inv_rope_fp8_quant: o [T, G * HG, D] bf16, by groups of heads to FP8 or bf16.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/build.h"
#include "conformance/cases/rotation.h"
#include "conformance/cases/slots.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "fused_inv_rope_fp8_quant";

enum class o_layout : std::uint8_t { dense, strided, unaligned, head_major };
enum class o_form : std::uint8_t { f32_scales, packed_scales, bf16 };

struct o_options {
  std::int64_t tokens = 0, groups = 1, heads = 1;  // T, G, HG
  std::int64_t nope = 448, rope = 64, block = 128;
  o_form form = o_form::f32_scales;
  content what = content::mixed;
  turns how = turns::drawn;
  o_layout layout = o_layout::dense;
  bool packed_bf16 = false;  // tma_aligned_scales is set though nothing is quantized
  std::int64_t table_gap = 0;
  std::int64_t guard = 0;
  level from = level::acceptance;
};

extent o_extent(const o_options& o) {
  const std::int64_t heads = o.groups * o.heads;
  const std::int64_t dims = o.nope + o.rope;
  const std::vector<std::int64_t> shape = {o.tokens, heads, dims};
  switch (o.layout) {
    case o_layout::dense:
      return dense(shape);
    case o_layout::strided:
      return {shape, {heads * (dims + 64) + 128, dims + 64, 1}, 64};
    case o_layout::unaligned:
      return {shape, {heads * (dims + 3) + 5, dims + 3, 1}, 3};
    case o_layout::head_major:
      return {shape, {dims, o.tokens * dims + 16, 1}, 8};
  }
  return {};
}

test_case build(const o_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  const bool quantize = o.form != o_form::bf16;
  const bool packed = o.form == o_form::packed_scales || o.packed_bf16;
  test_case made;
  made.attributes["n_groups"] = o.groups;
  made.attributes["heads_per_group"] = o.heads;
  made.attributes["nope_dim"] = o.nope;
  made.attributes["rope_dim"] = o.rope;
  made.attributes["quant_group_size"] = o.block;
  made.attributes["tma_aligned_scales"] = std::int64_t{packed ? 1 : 0};
  made.attributes["quantize"] = std::int64_t{quantize ? 1 : 0};

  const bool own_pairs = o.how == turns::hard || o.how == turns::window;
  rotation_options turning;
  turning.how = o.how;
  turning.dims = o.rope;
  turning.rows = own_pairs ? o.tokens + 1 : 17;
  turning.inverse = true;
  turning.rules = e4m3_rules_low_floor();
  turning.block = o.block;
  turning.at = quantize ? border::code : border::bf16;
  turning.scale = 1;
  const rotation turned(from, turning);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(o.tokens));
  for (std::size_t t = 0; t < positions.size(); ++t) {
    positions[t] = own_pairs ? static_cast<std::int64_t>(t) : from.between(0, turned.rows() - 1);
  }
  if (o.tokens > 0) positions.front() = 0;
  if (o.tokens > 1) positions.back() = turned.rows() - 1;

  buffer values = make_buffer("o", dtype::bf16, o_extent(o), o.guard);
  std::int64_t number = 0;
  std::vector<std::uint16_t> head(static_cast<std::size_t>(o.nope + o.rope));
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    for (std::int64_t h = 0; h < o.groups * o.heads; ++h) {
      fill_row(from, o.what, turning.rules, number, head.data(), o.nope + o.rope, o.block);
      turned.put(positions[static_cast<std::size_t>(t)], head.data() + o.nope);
      std::memcpy(values.view().element(t, h), head.data(), head.size() * 2);
    }
  }
  made.inputs.push_back(std::move(values));
  made.inputs.push_back(integers("positions", positions));
  made.inputs.push_back(turned.table("cos_sin_cache", dtype::f32, o.table_gap));
  return made;
}

std::string name_of(const o_options& o) {
  constexpr std::string_view forms[] = {"f32", "tma", "bf16"};
  std::string name = fmt::format("{}_t{}_g{}x{}_d{}r{}_q{}_{}_{}",
                                 forms[static_cast<std::size_t>(o.form)], o.tokens, o.groups,
                                 o.heads, o.nope, o.rope, o.block, name_of(o.what), name_of(o.how));
  if (o.layout == o_layout::strided) name += "_strided";
  if (o.layout == o_layout::unaligned) name += "_unaligned";
  if (o.layout == o_layout::head_major) name += "_headmajor";
  if (o.packed_bf16) name += "_tma";
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of(const o_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) {
    add_flags(flags, {"EmptyBatch"});
  } else {
    add_flags(flags, flags_of(o.what));
    add_flags(flags, flags_of(o.how));
  }
  if (o.form == o_form::packed_scales) add_flags(flags, {"PackedScales"});
  if (o.form == o_form::bf16) add_flags(flags, {"Unquantized"});
  if (o.form != o_form::bf16 && o.tokens % 4 != 0) add_flags(flags, {"PaddedRows"});
  if (o.layout != o_layout::dense) add_flags(flags, {"Strided"});
  if (o.layout == o_layout::unaligned) add_flags(flags, {"Unaligned"});
  if (o.layout == o_layout::head_major) add_flags(flags, {"HeadMajor"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTable"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if ((o.nope + o.rope) % 32 != 0) add_flags(flags, {"OddWidth"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_fused_inv_rope_fp8_quant_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<o_options> all;
  constexpr o_form forms[] = {o_form::f32_scales, o_form::packed_scales, o_form::bf16};
  int turn = 0;

  for (const o_form form : forms) {
    const bool packed = form == o_form::packed_scales;
    const bool bf16 = form == o_form::bf16;
    // Each kind of content, passed through and turned.
    for (const content what : all_contents) {
      const bool in_smoke = what == content::mixed || what == content::zero ||
                            (form == o_form::f32_scales && what != content::ordinary);
      all.push_back({.tokens = 2,
                     .groups = 1,
                     .heads = 1,
                     .form = form,
                     .what = what,
                     .how = turns::exact,
                     .from = in_smoke ? level::smoke : level::acceptance});
      all.push_back({.tokens = 5, .groups = 2, .heads = 3, .form = form, .what = what});
      all.push_back({.tokens = 33,
                     .groups = 4,
                     .heads = 4,
                     .form = form,
                     .what = what,
                     .how = turns::exact,
                     .from = level::exhaustive});
    }
    // Where the order of rounding shows, and where a scale's exponent turns.
    for (const std::int64_t tokens : {10, 31, 64}) {
      all.push_back({.tokens = tokens,
                     .groups = 1,
                     .heads = 1,
                     .nope = 64,
                     .block = 32,
                     .form = form,
                     .what = content::ordinary,
                     .how = turns::hard,
                     .from = tokens == 10 ? level::smoke : level::acceptance});
      all.push_back({.tokens = tokens,
                     .groups = 1,
                     .heads = tokens % 3,
                     .nope = 0,
                     .rope = 128,
                     .block = 32,
                     .form = form,
                     .what = content::zero,
                     .how = turns::window,
                     .from = tokens == 10 && !bf16 ? level::smoke : level::acceptance});
      all.push_back({.tokens = tokens,
                     .groups = 2,
                     .heads = 1,
                     .form = form,
                     .what = content::zero,
                     .how = turns::window});
      all.push_back({.tokens = tokens,
                     .groups = 1,
                     .heads = 2,
                     .form = form,
                     .what = content::ordinary,
                     .how = turns::hard});
    }
    // Widths: all dims rotated, a few, none; groups of any size that divides the head.
    struct width {
      std::int64_t nope, rope, block;
    };
    constexpr width packed_widths[] = {{0, 32, 8},   {64, 64, 32},   {30, 6, 9},    {256, 0, 64},
                                       {0, 512, 32}, {960, 64, 128}, {192, 64, 16}, {100, 20, 5}};
    constexpr width other_widths[] = {{0, 2, 1},    {1, 0, 1},       {31, 2, 11},   {64, 64, 128},
                                      {0, 512, 64}, {960, 64, 1024}, {192, 64, 64}, {100, 20, 24}};
    for (const width& w : packed ? packed_widths : other_widths) {
      all.push_back({.tokens = 6,
                     .groups = 2,
                     .heads = 2,
                     .nope = w.nope,
                     .rope = w.rope,
                     .block = w.block,
                     .form = form,
                     .from = w.nope == 30 || w.nope == 31 ? level::smoke : level::acceptance});
      all.push_back({.tokens = 3,
                     .groups = 1,
                     .heads = 3,
                     .nope = w.nope,
                     .rope = w.rope,
                     .block = w.block,
                     .form = form,
                     .how = turns::exact,
                     .layout = o_layout::strided,
                     .table_gap = 4});
    }
    // Layouts and groups.
    struct grouping {
      std::int64_t groups, heads;
    };
    for (const o_layout layout :
         {o_layout::dense, o_layout::strided, o_layout::unaligned, o_layout::head_major}) {
      for (const grouping& g : {grouping{1, 1}, grouping{1, 3}, grouping{3, 1}, grouping{4, 8}}) {
        ++turn;
        all.push_back({.tokens = 1 + turn % 4,
                       .groups = g.groups,
                       .heads = g.heads,
                       .nope = 64,
                       .block = 32,
                       .form = form,
                       .how = turn % 5 == 0 ? turns::any_bits : turns::drawn,
                       .layout = layout,
                       .packed_bf16 = bf16 && turn % 2 == 0,
                       .table_gap = (turn % 3) * 12,
                       .guard = (turn % 3) * 8,
                       .from = g.heads == 3 && !bf16 ? level::smoke : level::acceptance});
      }
    }
    all.push_back({.tokens = 6,
                   .groups = 2,
                   .heads = 1,
                   .nope = 64,
                   .block = 32,
                   .form = form,
                   .how = turns::any_bits,
                   .from = level::smoke});
    // Heads of the model's width at any address; more of them than launchers give a block each.
    all.push_back({.tokens = 3,
                   .groups = 2,
                   .heads = 5,
                   .form = form,
                   .layout = o_layout::unaligned,
                   .table_gap = 12,
                   .guard = 8});
    if (!bf16) all.push_back({.tokens = 2, .groups = 5, .heads = 421, .form = form});
    for (const std::int64_t tokens : {1023, 1024}) {
      if ((tokens == 1023) == packed) continue;
      all.push_back({.tokens = tokens, .form = form, .how = turns::exact});
    }
    // Batch sizes around those where launches change.
    for (const std::int64_t tokens : {0, 1, 2, 8, 64, 128, 1023, 1024}) {
      const bool large = tokens > 1000;
      for (const grouping& g : {grouping{1, 1}, grouping{5, 1}, grouping{2, 16}}) {
        all.push_back({.tokens = tokens,
                       .groups = g.groups,
                       .heads = g.heads,
                       .nope = large ? 64 : 448,
                       .block = large ? 32 : 128,
                       .form = form,
                       .from = tokens == 0 && g.groups == 5 ? level::smoke
                               : tokens * g.groups * g.heads > (large ? 1024 : 8 * 32)
                                   ? level::exhaustive
                                   : level::acceptance});
      }
    }
  }

  add_specs(
      to, kernel, seed, all, [](const o_options& o) { return name_of(o); },
      [](const o_options& o) { return flags_of(o); },
      [](const o_options& o, const std::string& name, std::uint64_t s) {
        return build(o, name, s);
      });
}

}  // namespace kvcts
