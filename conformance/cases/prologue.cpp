// Cases of the fused prologues: RMSNorm of q_c and kv_c, fp8_ds_mla entries, index keys, top-k
// rows.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/key_insert.h"
#include "conformance/cases/slots.h"

namespace kvcts {
namespace {

constexpr std::int64_t kv_dims = 512, rope_dims = 64, tile_dims = 128, entry_bytes = 656;

enum class tile_scale : std::uint8_t { absent, amax, pow2 };

struct prologue_options {
  std::int64_t tokens = 0;                      // T
  std::int64_t query_dims = 64, key_dims = 64;  // Q, D
  std::int64_t mla_block = 3, index_block = 3;  // tokens a page
  norm_source source = norm_source::rows;
  content what = content::mixed;
  tile_scale rule = tile_scale::absent;
  bool bf16_parameters = false;
  bool fnuz = false;
  std::int64_t warps = 0;  // 0: the attribute is absent
  int eps = 0;             // of norm_epsilons
  bool mla_cache = true, mla_slots = true, index_cache = true, index_slots = true;
  std::int64_t short_by = 0;  // slots that both mappings lack
  std::int64_t columns = 4, more_topk = 0, topk_gap = 0;
  std::int64_t row_gap = 0;    // elements between the rows of every input
  std::int64_t entry_gap = 0;  // bytes between the entries of mla_cache
  std::int64_t page_gap = 0, offset = 0, guard = 0;
  bool warm = false, negative = false;
  bool every_step = false;  // of a hard key's sums
  slot_kind kind = slot_kind::shuffled;
  level from = level::acceptance;
};

block_rules tile_rules(const prologue_options& o) {
  const fp8_format format = o.fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn;
  // amax: the floor is the scale 2^-126; pow2: 1e-4 gives 2^-13.
  return e4m3_rules_down_to(format, o.rule == tile_scale::pow2 ? -13 : -126);
}

std::int64_t slots_of(const prologue_options& o) {
  return std::max<std::int64_t>(o.tokens - o.short_by, 0);
}

// A row to be normalized and its weight.
struct normed {
  buffer rows, weight;
};
normed draw_normed(draw& from, const prologue_options& o, std::string_view rows_name,
                   std::string_view weight_name, std::int64_t dims, norm_border border) {
  const block_rules rules = tile_rules(o);
  const row_shape shape = {o.tokens, dims, o.row_gap, o.guard};
  normed made;
  std::vector<std::uint32_t> weight;
  if (o.source == norm_source::parameters) {
    made.rows = draw_sign_rows(from, rows_name, shape);
    weight = draw_parameters(from, o.what, rules, dims, tile_dims);
  } else {
    made.rows =
        draw_rows(from, rows_name, shape, o.source, o.what, rules, tile_dims,
                  {.tree = tree_of(next_power_of_two(dims), 2, 4), .eps = norm_epsilons[o.eps]});
    weight = is_hard(o.source)
                 ? border_weight(from, made.rows, norm_epsilons[o.eps], border, rules, tile_dims)
                 : draw_parameters(from, content::ordinary, rules, dims, tile_dims);
  }
  made.weight = parameter_buffer(weight_name, o.bf16_parameters ? dtype::bf16 : dtype::f32, weight);
  return made;
}

test_case build(key_form form, std::string_view kernel, const prologue_options& o,
                const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["eps"] = norm_epsilons[o.eps];
  made.attributes["fp8_format"] = std::string(o.fnuz ? "e4m3fnuz" : "e4m3fn");
  if (o.warps != 0) made.attributes["num_warps"] = o.warps;
  if (o.rule == tile_scale::amax) made.attributes["mla_scale_rule"] = std::string("amax");
  if (o.rule == tile_scale::pow2) made.attributes["mla_scale_rule"] = std::string("pow2");

  normed q = draw_normed(from, o, "q_c", "q_norm_weight", o.query_dims, norm_border::bf16);
  normed kv = draw_normed(from, o, "kv_c", "kv_norm_weight", kv_dims, norm_border::bf16_and_code);
  // Copied bit for bit: any pattern.
  buffer k_pe = make_buffer("k_pe", dtype::bf16,
                            {{o.tokens, rope_dims}, {rope_dims + o.row_gap, 1}, 0}, o.guard);
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    for (std::int64_t d = 0; d < rope_dims; ++d) {
      store(k_pe.view().element(t, d), static_cast<std::uint16_t>(from.below(0x10000)));
    }
  }
  key_rows keys = draw_keys(from, {.rows_name = "index_k",
                                   .weight_name = "k_norm_weight",
                                   .bias_name = "k_norm_bias",
                                   .shape = {o.tokens, o.key_dims, o.row_gap, o.guard},
                                   .form = form,
                                   .fnuz = o.fnuz,
                                   .source = o.source,
                                   .what = o.what,
                                   .bf16_parameters = o.bf16_parameters,
                                   .eps = norm_epsilons[o.eps],
                                   .warps = o.warps == 0 ? 4 : static_cast<int>(o.warps),
                                   .every_step = o.every_step});
  for (buffer* b :
       {&q.rows, &kv.rows, &k_pe, &keys.rows, &q.weight, &kv.weight, &keys.weight, &keys.bias}) {
    made.inputs.push_back(std::move(*b));
  }
  made.inputs.push_back(draw_topk(from, o.tokens + o.more_topk, o.columns, o.topk_gap, o.guard));

  const auto add_cache = [&](bool cache, bool mapping, std::string_view cache_name,
                             std::string_view mapping_name, const page_shape& pages) {
    if (cache) made.inputs.push_back(draw_pages(from, cache_name, dtype::u8, pages));
    if (!mapping) return;
    made.inputs.push_back(integers(
        mapping_name,
        draw_slots(from, slots_of(o), pages.blocks * pages.block_size, o.kind, o.negative)));
  };
  const auto blocks_of = [&](std::int64_t block_size) {
    return (slots_of(o) + slots_of(o) / 3) / block_size + 1;
  };
  add_cache(o.mla_cache, o.mla_slots, "mla_cache", "mla_slot_mapping",
            {.blocks = blocks_of(o.mla_block),
             .block_size = o.mla_block,
             .row = entry_bytes,
             .entry_gap = o.entry_gap,
             .page_gap = o.page_gap,
             .offset = o.offset,
             .guard = o.guard,
             .warm = o.warm});
  add_cache(o.index_cache, o.index_slots, "index_cache", "index_slot_mapping",
            {.blocks = blocks_of(o.index_block),
             .block_size = o.index_block,
             .row = key_record_bytes(form, o.key_dims),
             .page_gap = o.page_gap,
             .offset = o.offset,
             .guard = o.guard,
             .warm = o.warm});
  return made;
}

std::string name_of(const prologue_options& o) {
  std::string name = fmt::format("t{}_q{}_d{}_b{}_{}_{}_{}", o.tokens, o.query_dims, o.key_dims,
                                 o.mla_block, o.index_block, name_of(o.source), name_of(o.what));
  if (o.rule == tile_scale::amax) name += "_amax";
  if (o.rule == tile_scale::pow2) name += "_pow2";
  if (o.bf16_parameters) name += "_bf16";
  if (o.fnuz) name += "_fnuz";
  if (o.warps != 0) name += fmt::format("_w{}", o.warps);
  if (o.eps != 0) name += fmt::format("_eps{}", o.eps);
  if (!o.mla_cache) name += "_nomla";
  if (!o.mla_slots) name += "_nomlaslots";
  if (!o.index_cache) name += "_noindex";
  if (!o.index_slots) name += "_noindexslots";
  if (o.short_by != 0) name += fmt::format("_short{}", o.short_by);
  if (o.columns != 4) name += fmt::format("_k{}", o.columns);
  if (o.more_topk != 0) name += fmt::format("_more{}", o.more_topk);
  if (o.topk_gap != 0) name += fmt::format("_topkgap{}", o.topk_gap);
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
  if (o.entry_gap != 0) name += fmt::format("_entry{}", o.entry_gap);
  if (o.page_gap != 0) name += fmt::format("_gap{}", o.page_gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.guard != 0) name += "_guard";
  if (o.warm) name += "_warm";
  if (o.negative) name += "_neg";
  if (o.every_step) name += "_steps";
  if (o.kind == slot_kind::sequential) name += "_seq";
  if (o.kind == slot_kind::all_negative) name += "_allneg";
  return name;
}

std::vector<std::string> flags_of(const prologue_options& o) {
  std::vector<std::string> flags;
  const bool mapped = o.mla_slots || o.index_slots;
  if (o.tokens == 0) {
    add_flags(flags, {"EmptyBatch"});
  } else {
    add_flags(flags, flags_of(o.source, o.what));
  }
  if (o.rule == tile_scale::pow2) add_flags(flags, {"Pow2TileScale"});
  if (o.bf16_parameters) add_flags(flags, {"Bf16Parameters"});
  if (o.fnuz) add_flags(flags, {"Fnuz"});
  if (o.warps > 0) add_flags(flags, {"WarpCount"});
  if (!o.mla_cache || !o.mla_slots || !o.index_cache || !o.index_slots) {
    add_flags(flags, {"AbsentArgument"});
  }
  if (o.short_by != 0) add_flags(flags, {"ShortMapping"});
  if (o.columns == 0) add_flags(flags, {"EmptyTopk"});
  if (o.topk_gap != 0) add_flags(flags, {"StridedTopk"});
  if (o.row_gap != 0) add_flags(flags, {"Strided"});
  if (o.entry_gap != 0) add_flags(flags, {"StridedEntry"});
  if (o.page_gap != 0) add_flags(flags, {"StridedPage"});
  if (o.offset != 0) add_flags(flags, {"CacheOffset"});
  if (o.offset % 16 != 0 || o.page_gap % 16 != 0 || o.entry_gap % 16 != 0 || o.row_gap % 8 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.warm) add_flags(flags, {"WarmCache"});
  if (o.negative && mapped && slots_of(o) > 4) add_flags(flags, {"NegativeSlot"});
  if (o.kind == slot_kind::all_negative) add_flags(flags, {"AllSlotsNegative", "NegativeSlot"});
  if (o.kind == slot_kind::sequential) add_flags(flags, {"SequentialSlots"});
  if (o.mla_block == 1 || o.index_block == 1) add_flags(flags, {"OneTokenPage"});
  if (o.mla_block == 3 || o.index_block == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

std::vector<prologue_options> options_of(key_form form) {
  std::vector<prologue_options> all;
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 256};
  constexpr std::int64_t query_widths[] = {64, 1536, 1, 100, 512, 2048, 33};
  constexpr std::int64_t warp_counts[] = {0, 1, 2, 4};
  constexpr tile_scale rules[] = {tile_scale::absent, tile_scale::amax, tile_scale::pow2};
  int turn = 0;

  // Each kind of content, put past the norms (weights over rows of +-2^n, eps 0) and before them.
  for (const content what : all_contents) {
    for (const tile_scale rule : {tile_scale::amax, tile_scale::pow2}) {
      for (const bool fnuz : {false, true}) {
        ++turn;
        const bool in_smoke = !fnuz && (rule == tile_scale::pow2) == (turn % 8 < 4);
        all.push_back({.tokens = 1,
                       .query_dims = 32,
                       .key_dims = in_smoke ? 64 : key_widths[turn % 6],
                       .mla_block = 1,
                       .index_block = 1,
                       .source = norm_source::parameters,
                       .what = what,
                       .rule = rule,
                       .fnuz = fnuz,
                       .eps = 2,
                       .from = in_smoke ? level::smoke : level::acceptance});
        all.push_back({.tokens = 5,
                       .query_dims = query_widths[turn % 4],
                       .key_dims = key_widths[turn % 5],
                       .mla_block = block_sizes[turn % 3],
                       .index_block = block_sizes[(turn + 1) % 3],
                       .what = what,
                       .rule = rules[turn % 3],
                       .bf16_parameters = turn % 3 == 1,
                       .fnuz = fnuz,
                       .warps = warp_counts[turn % 4],
                       .eps = turn % 5,
                       .warm = turn % 4 == 0,
                       .negative = turn % 2 == 0,
                       .from = rule == tile_scale::amax ? level::acceptance : level::exhaustive});
      }
    }
  }
  // How amax becomes a quotient, and what divides by a scale that is no power of two.
  for (const content what : {content::quotient, content::divided}) {
    for (const bool fnuz : {false, true}) {
      all.push_back({.tokens = 1,
                     .query_dims = 32,
                     .key_dims = 64,
                     .mla_block = 1,
                     .index_block = 1,
                     .source = norm_source::parameters,
                     .what = what,
                     .rule = tile_scale::amax,
                     .fnuz = fnuz,
                     .eps = 2,
                     .from = fnuz ? level::acceptance : level::smoke});
    }
  }
  // Sums whose order shows.
  for (const norm_source source : {norm_source::hard_sum, norm_source::hard_squares}) {
    for (const std::int64_t query_dims : query_widths) {
      for (const tile_scale rule : {tile_scale::amax, tile_scale::pow2}) {
        ++turn;
        all.push_back({.tokens = query_dims == 64 ? 2 : 6,
                       .query_dims = query_dims,
                       .key_dims = key_widths[query_dims == 64 ? turn % 3 : turn % 6],
                       .source = source,
                       .what = content::ordinary,
                       .rule = rule,
                       .fnuz = turn % 4 == 3,
                       .warps = warp_counts[turn % 4],
                       .eps = turn % 2,
                       .kind = slot_kind::sequential,
                       .from = query_dims == 64 ? level::smoke : level::acceptance});
      }
    }
    for (const std::int64_t key_dims : key_widths) {
      for (const std::int64_t warps : warp_counts) {
        all.push_back({.tokens = 1,
                       .query_dims = 1024,
                       .key_dims = key_dims,
                       .source = source,
                       .what = content::ordinary,
                       .warps = warps,
                       .mla_cache = false,
                       .mla_slots = false,
                       .from = level::exhaustive});
      }
    }
  }
  for (const norm_source source : {norm_source::hard_sum, norm_source::hard_squares}) {
    for (const std::int64_t key_dims : key_widths) {
      for (const std::int64_t warps : {0, 1, 2}) {
        all.push_back({.tokens = 1,
                       .query_dims = 32,
                       .key_dims = key_dims,
                       .index_block = 1,
                       .source = source,
                       .what = content::ordinary,
                       .warps = warps,
                       .mla_cache = false,
                       .mla_slots = false,
                       .every_step = true,
                       .from = key_dims <= 128 ? level::smoke : level::acceptance});
      }
    }
  }
  // Arguments that are absent.
  for (int absent = 1; absent < 16; ++absent) {
    const bool in_smoke = absent == 1 || absent == 2 || absent == 4 || absent == 8 || absent == 15;
    all.push_back({.tokens = 2,
                   .query_dims = 32,
                   .key_dims = 32,
                   .mla_block = 1,
                   .what = content::ordinary,
                   .mla_cache = (absent & 1) == 0,
                   .mla_slots = (absent & 2) == 0,
                   .index_cache = (absent & 4) == 0,
                   .index_slots = (absent & 8) == 0,
                   .from = in_smoke ? level::smoke : level::acceptance});
  }
  // Layouts. The f32 scales want pages and entries at multiples of 4 bytes.
  for (const std::int64_t gap : {0, 16, 1168, 20}) {
    for (const std::int64_t offset : {0, 64, 4}) {
      ++turn;
      all.push_back({.tokens = 7,
                     .query_dims = query_widths[turn % 4],
                     .key_dims = key_widths[turn % 3],
                     .mla_block = block_sizes[turn % 3],
                     .index_block = block_sizes[(turn + 1) % 3],
                     .rule = rules[turn % 3],
                     .bf16_parameters = turn % 2 == 0,
                     .columns = turn % 4 == 0 ? 7 : 2,
                     .more_topk = turn % 3,
                     .topk_gap = turn % 4,
                     .row_gap = turn % 3 == 0   ? 0
                                : turn % 3 == 1 ? 16
                                                : 5,
                     .entry_gap = turn % 4 * 16 - (turn % 4 == 3 ? 4 : 0),
                     .page_gap = gap,
                     .offset = offset,
                     .guard = turn % 2 * 12,
                     .warm = turn % 3 != 0,
                     .negative = true});
    }
  }
  all.push_back({.tokens = 5,
                 .query_dims = 48,
                 .key_dims = 32,
                 .columns = 5,
                 .more_topk = 1,
                 .topk_gap = 3,
                 .row_gap = 5,
                 .entry_gap = 12,
                 .page_gap = 20,
                 .offset = 64,
                 .guard = 12,
                 .warm = true,
                 .negative = true,
                 .from = level::smoke});
  // Slots -1, -7, INT64_MIN: three places of a page of 4, none that of a live slot but 0.
  all.push_back({.tokens = 5,
                 .query_dims = 32,
                 .key_dims = 32,
                 .mla_block = 1,
                 .index_block = 4,
                 .warm = true,
                 .negative = true,
                 .from = level::smoke});
  // Counts.
  all.push_back({.tokens = 3,
                 .query_dims = 32,
                 .key_dims = 32,
                 .bf16_parameters = true,
                 .short_by = 1,
                 .from = level::smoke});
  all.push_back({.tokens = 5, .key_dims = 32, .short_by = 5, .warm = true});
  all.push_back({.tokens = 1,
                 .query_dims = 32,
                 .key_dims = 32,
                 .mla_block = 1,
                 .columns = 0,
                 .from = level::smoke});
  all.push_back({.tokens = 0,
                 .query_dims = 32,
                 .key_dims = 32,
                 .more_topk = 2,
                 .warm = true,
                 .from = level::smoke});
  all.push_back({.tokens = 2,
                 .query_dims = 32,
                 .key_dims = 32,
                 .mla_block = 1,
                 .warm = true,
                 .kind = slot_kind::all_negative,
                 .from = level::smoke});
  for (const std::int64_t block_size : block_sizes) {
    all.push_back({.tokens = 9,
                   .key_dims = 32,
                   .mla_block = block_size,
                   .index_block = block_size,
                   .kind = slot_kind::sequential});
  }
  // Batch sizes.
  for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
    for (const std::int64_t block_size : {64, 16}) {
      ++turn;
      const bool large = tokens > 100;
      all.push_back({.tokens = tokens,
                     .query_dims = large ? 8 : query_widths[turn % 5],
                     .key_dims = large ? 32 : key_widths[turn % 5],
                     .mla_block = block_size,
                     .index_block = 80 - block_size,
                     .rule = rules[turn % 3],
                     .bf16_parameters = turn % 3 == 0,
                     .fnuz = turn % 5 == 0,
                     .warps = warp_counts[turn % 4],
                     .mla_cache = tokens < 1000 || block_size == 64,
                     .columns = 1,
                     .page_gap = turn % 3 * 48,
                     .negative = tokens > 4,
                     .from = large && block_size == 64 && tokens != 1024 ? level::exhaustive
                                                                         : level::acceptance});
    }
  }
  // Rows that launchers share out between warps, of keys of 128 dims: widths, trees, parameters.
  for (const std::int64_t query_dims : {768, 1024, 1280, 2048}) {
    for (const std::int64_t warps : {0, 1, 2}) {
      ++turn;
      all.push_back({.tokens = 3,
                     .query_dims = query_dims,
                     .key_dims = 128,
                     .mla_block = block_sizes[turn % 3],
                     .index_block = 1,
                     .rule = rules[turn % 3],
                     .bf16_parameters = turn % 2 == 0,
                     .fnuz = turn % 4 == 1,
                     .warps = warps,
                     .index_slots = turn % 6 != 5,
                     .columns = turn % 3 * 33 + 1,
                     .topk_gap = turn % 2});
    }
    all.push_back({.tokens = 2,
                   .query_dims = query_dims,
                   .key_dims = query_dims == 768 ? 32 : 128,
                   .what = content::ordinary,
                   .fnuz = query_dims == 1280,
                   .mla_cache = false,
                   .columns = 7});
  }
  const bool fp8 = form == key_form::fp8;
  all.push_back({.tokens = 1031,
                 .query_dims = 768,
                 .key_dims = 128,
                 .mla_block = 64,
                 .index_block = 64,
                 .rule = fp8 ? tile_scale::amax : tile_scale::pow2,
                 .bf16_parameters = !fp8,
                 .fnuz = fp8,
                 .columns = 2,
                 .negative = true});
  // Batches past those at which launchers give a token fewer warps.
  for (const std::int64_t tokens : {1025, 2050}) {
    for (const auto& [query_dims, key_dims] : {std::pair{1536, 128}, {512, 128}, {384, 64}}) {
      ++turn;
      all.push_back({.tokens = tokens,
                     .query_dims = query_dims,
                     .key_dims = key_dims,
                     .mla_block = 64,
                     .index_block = 64,
                     .rule = rules[turn % 3],
                     .bf16_parameters = turn % 2 == 0,
                     .warps = warp_counts[turn % 4],
                     .columns = 64,
                     .page_gap = turn % 2 * 48,
                     .negative = true,
                     .from = level::exhaustive});
    }
  }
  return all;
}

void add_cases(std::vector<case_spec>& to, key_form form, std::string_view kernel,
               std::uint64_t seed) {
  const auto build_case = [form, kernel](const prologue_options& o, const std::string& name,
                                         std::uint64_t s) {
    return build(form, kernel, o, name, s);
  };
  add_specs(
      to, kernel, seed, options_of(form), [](const prologue_options& o) { return name_of(o); },
      [](const prologue_options& o) { return flags_of(o); }, build_case);
}

}  // namespace

void add_mxfp4_fused_prologue_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  add_cases(to, key_form::mxfp4, "mxfp4_fused_prologue", seed);
}
void add_dsa_fused_prologue_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  add_cases(to, key_form::fp8, "dsa_fused_prologue", seed);
}

}  // namespace kvcts
