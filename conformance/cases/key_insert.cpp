// Cases of the index key inserts: k [N, D] bf16, LayerNorm, then MXFP4 or FP8 records in pages.
#include "conformance/cases/key_insert.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/slots.h"

namespace kvcts {

block_rules key_rules(key_form form, bool fnuz) {
  if (form == key_form::mxfp4) return e2m1_rules();
  return e4m3_rules(fnuz ? fp8_format::e4m3fnuz : fp8_format::e4m3fn);
}

key_rows draw_keys(draw& from, const key_rows_options& o) {
  const block_rules rules = key_rules(o.form, o.fnuz);
  const std::int64_t dims = o.shape.elements;
  const std::int64_t block = key_block(o.form, dims);
  const bool through = o.source == norm_source::parameters;
  key_rows made;
  made.rows = draw_rows(
      from, o.rows_name, o.shape, o.source, through ? content::ordinary : o.what, rules, block,
      {.tree = tree_of(dims, 2, o.warps), .eps = o.eps, .layer = true, .every_step = o.every_step});
  layer_parameters parameters;
  if (is_hard(o.source) && o.shape.rows > 0) {
    // The residuals are of 2^-24 of the weight: E4M3's floor of 1e-4 lies below them.
    parameters = residual_parameters(from, made.rows, o.eps, o.form == key_form::mxfp4 ? 0 : 20);
  } else if (through) {
    parameters.weight.assign(static_cast<std::size_t>(dims), from.one_in(2) ? 0 : 0x80000000);
    parameters.bias = draw_parameters(from, o.what, rules, dims, block);
  } else {
    parameters.weight = draw_parameters(from, content::ordinary, rules, dims, block);
    parameters.bias = draw_parameters(from, content::ordinary, rules, dims, block);
  }
  const dtype type = o.bf16_parameters ? dtype::bf16 : dtype::f32;
  made.weight = parameter_buffer(o.weight_name, type, parameters.weight);
  made.bias = parameter_buffer(o.bias_name, type, parameters.bias);
  return made;
}

buffer draw_topk(draw& from, std::int64_t rows, std::int64_t columns, std::int64_t gap,
                 std::int64_t guard) {
  buffer made = make_buffer("topk_indices_buffer", dtype::i32,
                            {{rows, columns}, {columns + gap, 1}, gap != 0 ? 1 : 0}, guard);
  for (std::byte& b : made.bytes) b = static_cast<std::byte>(from.below(256));
  return made;
}

namespace {

struct insert_options {
  std::int64_t tokens = 0;       // num_tokens
  std::int64_t rows = -1;        // N; -1: as many
  std::int64_t slots = -1;       // S; -1: as many
  std::int64_t dims = 128;       // D
  std::int64_t block_size = 16;  // B
  norm_source source = norm_source::rows;
  content what = content::mixed;
  bool bf16_parameters = false;
  bool fnuz = false;
  std::int64_t warps = 0;      // 0: the attribute is absent
  int eps = 0;                 // of norm_epsilons
  std::int64_t columns = 4;    // K
  std::int64_t more_topk = 0;  // rows of the top-k buffer past num_tokens
  std::int64_t topk_gap = 0;   // elements between its rows
  std::int64_t row_gap = 0;    // elements between the rows of k
  std::int64_t page_gap = 0;   // bytes between pages
  std::int64_t offset = 0;     // bytes before the first page
  std::int64_t guard = 0;      // elements behind every buffer
  bool warm = false, negative = false;
  bool every_step = false;  // of a hard row's sums
  slot_kind kind = slot_kind::shuffled;
  level from = level::acceptance;
};

std::int64_t rows_of(const insert_options& o) { return o.rows < 0 ? o.tokens : o.rows; }
std::int64_t slots_of(const insert_options& o) { return o.slots < 0 ? o.tokens : o.slots; }

test_case build(key_form form, std::string_view kernel, const insert_options& o,
                const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["norm_eps"] = norm_epsilons[o.eps];
  made.attributes["num_tokens"] = o.tokens;
  if (o.warps != 0) made.attributes["num_warps"] = o.warps;
  if (o.fnuz) {
    made.attributes["fp8_format"] = std::string("e4m3fnuz");
  } else if (form == key_form::fp8 && from.one_in(2)) {
    made.attributes["fp8_format"] = std::string("e4m3fn");
  }
  key_rows keys = draw_keys(from, {.rows_name = "k",
                                   .weight_name = "norm_weight",
                                   .bias_name = "norm_bias",
                                   .shape = {rows_of(o), o.dims, o.row_gap, o.guard},
                                   .form = form,
                                   .fnuz = o.fnuz,
                                   .source = o.source,
                                   .what = o.what,
                                   .bf16_parameters = o.bf16_parameters,
                                   .eps = norm_epsilons[o.eps],
                                   .warps = o.warps == 0 ? 1 : static_cast<int>(o.warps),
                                   .every_step = o.every_step});
  const std::int64_t blocks = (slots_of(o) + slots_of(o) / 3) / o.block_size + 2;
  made.inputs.push_back(std::move(keys.rows));
  made.inputs.push_back(std::move(keys.weight));
  made.inputs.push_back(std::move(keys.bias));
  made.inputs.push_back(integers(
      "slot_mapping", draw_slots(from, slots_of(o), blocks * o.block_size, o.kind, o.negative)));
  made.inputs.push_back(draw_pages(from, "kv_cache", dtype::u8,
                                   {.blocks = blocks,
                                    .block_size = o.block_size,
                                    .row = key_record_bytes(form, o.dims),
                                    .page_gap = o.page_gap,
                                    .offset = o.offset,
                                    .guard = o.guard,
                                    .warm = o.warm}));
  made.inputs.push_back(draw_topk(from, o.tokens + o.more_topk, o.columns, o.topk_gap, o.guard));
  return made;
}

std::string name_of(const insert_options& o) {
  std::string name = fmt::format("t{}_n{}_s{}_d{}_b{}_{}_{}", o.tokens, rows_of(o), slots_of(o),
                                 o.dims, o.block_size, name_of(o.source), name_of(o.what));
  if (o.bf16_parameters) name += "_bf16";
  if (o.fnuz) name += "_fnuz";
  if (o.warps != 0) name += fmt::format("_w{}", o.warps);
  if (o.eps != 0) name += fmt::format("_eps{}", o.eps);
  if (o.columns != 4) name += fmt::format("_k{}", o.columns);
  if (o.more_topk != 0) name += fmt::format("_more{}", o.more_topk);
  if (o.topk_gap != 0) name += fmt::format("_topkgap{}", o.topk_gap);
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
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

std::vector<std::string> flags_of(const insert_options& o) {
  std::vector<std::string> flags;
  const std::int64_t inserted = std::min(o.tokens, slots_of(o));
  if (o.tokens == 0) add_flags(flags, {"EmptyBatch"});
  if (inserted > 0 && o.kind != slot_kind::all_negative) {
    add_flags(flags, flags_of(o.source, o.what));
  }
  if (slots_of(o) < o.tokens) add_flags(flags, {"ShortMapping"});
  if (slots_of(o) > o.tokens) add_flags(flags, {"LongMapping"});
  if (o.bf16_parameters) add_flags(flags, {"Bf16Parameters"});
  if (o.fnuz) add_flags(flags, {"Fnuz"});
  if (o.warps > 0) add_flags(flags, {"WarpCount"});
  if (o.columns == 0) add_flags(flags, {"EmptyTopk"});
  if (o.topk_gap != 0) add_flags(flags, {"StridedTopk"});
  if (o.row_gap != 0) add_flags(flags, {"Strided"});
  if (o.page_gap != 0) add_flags(flags, {"StridedPage"});
  if (o.offset != 0) add_flags(flags, {"CacheOffset"});
  if (o.offset % 16 != 0 || o.page_gap % 16 != 0 || o.row_gap % 8 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.warm) add_flags(flags, {"WarmCache"});
  if (o.negative && slots_of(o) > 4) add_flags(flags, {"NegativeSlot"});
  if (o.kind == slot_kind::all_negative) add_flags(flags, {"AllSlotsNegative", "NegativeSlot"});
  if (o.kind == slot_kind::sequential) add_flags(flags, {"SequentialSlots"});
  if (o.block_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.block_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

std::vector<insert_options> options_of(key_form form) {
  std::vector<insert_options> all;
  const bool fp8 = form == key_form::fp8;
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 256};
  constexpr std::int64_t warp_counts[] = {0, 1, 2, 4};
  int turn = 0;

  // Each kind of content, put past the norm and before it.
  for (const content what : all_contents) {
    for (const bool fnuz : {false, true}) {
      if (fnuz && !fp8) continue;
      ++turn;
      all.push_back({.tokens = 1,
                     .dims = 256,
                     .block_size = 3,
                     .source = norm_source::parameters,
                     .what = what,
                     .fnuz = fnuz,
                     .from = !fnuz || what == content::ties || what == content::nan
                                 ? level::smoke
                                 : level::acceptance});
      for (const std::int64_t dims : {64, 1024}) {
        all.push_back({.tokens = 2,
                       .dims = dims,
                       .block_size = block_sizes[turn % 3],
                       .source = norm_source::parameters,
                       .what = what,
                       .bf16_parameters = dims == 64,
                       .fnuz = fnuz,
                       .warps = warp_counts[turn % 4],
                       .warm = true});
      }
      all.push_back({.tokens = 9,
                     .dims = key_widths[turn % 4],
                     .block_size = block_sizes[turn % 3],
                     .what = what,
                     .bf16_parameters = turn % 2 == 0,
                     .fnuz = fnuz,
                     .warps = warp_counts[turn % 4],
                     .eps = turn % 5,
                     .warm = turn % 3 == 0,
                     .negative = turn % 2 == 0,
                     .from = !fnuz && (what == content::mixed || what == content::zero)
                                 ? level::smoke
                                 : level::acceptance});
      all.push_back({.tokens = 64,
                     .dims = 128,
                     .block_size = 64,
                     .what = what,
                     .fnuz = fnuz,
                     .from = level::exhaustive});
    }
  }
  // How amax becomes a quotient, and that an exponent.
  for (const content what : {content::quotient, content::window}) {
    for (const bool fnuz : {false, true}) {
      if (fnuz && !fp8) continue;
      all.push_back({.tokens = 1,
                     .dims = 64,
                     .block_size = 3,
                     .source = norm_source::parameters,
                     .what = what,
                     .fnuz = fnuz,
                     .from = level::smoke});
    }
  }
  // The tree of each width and number of warps.
  for (const norm_source source : {norm_source::hard_sum, norm_source::hard_squares}) {
    for (const std::int64_t dims : key_widths) {
      for (const std::int64_t warps : warp_counts) {
        if (warps == 1) continue;  // the default
        all.push_back({.tokens = 1,
                       .dims = dims,
                       .block_size = 1,
                       .source = source,
                       .what = content::ordinary,
                       .warps = warps,
                       .from = dims <= 128 ? level::smoke : level::acceptance});
        for (const int eps : {1, 2}) {
          all.push_back({.tokens = 1,
                         .dims = dims,
                         .block_size = 1,
                         .source = source,
                         .what = content::ordinary,
                         .fnuz = fp8 && warps == 2,
                         .warps = warps,
                         .eps = eps,
                         .from = level::exhaustive});
        }
      }
    }
  }
  for (const norm_source source : {norm_source::hard_sum, norm_source::hard_squares}) {
    for (const std::int64_t dims : key_widths) {
      for (const std::int64_t warps : {1, 2, 4}) {
        all.push_back({.tokens = 1,
                       .dims = dims,
                       .block_size = 1,
                       .source = source,
                       .what = content::ordinary,
                       .warps = warps,
                       .every_step = true,
                       .from = dims <= 128 ? level::smoke : level::acceptance});
      }
    }
  }
  // 128 dims, aligned and not: trees, tables and types of parameters.
  for (const std::int64_t warps : {1, 2, 4}) {
    for (const std::int64_t row_gap : {0, 5}) {
      for (const bool bf16 : {false, true}) {
        all.push_back({.tokens = 5,
                       .dims = 128,
                       .block_size = 3,
                       .bf16_parameters = bf16,
                       .fnuz = fp8 && bf16 == (row_gap == 0),
                       .warps = warps,
                       .row_gap = row_gap,
                       .warm = bf16});
      }
    }
  }
  // Layouts. An f32 scale wants pages at multiples of 4 bytes.
  for (const std::int64_t gap : {0, 16, 1168, fp8 ? 20 : 5}) {
    for (const std::int64_t offset : {0, 64, fp8 ? 4 : 3}) {
      ++turn;
      all.push_back({.tokens = 11,
                     .rows = 14,
                     .dims = key_widths[turn % 3],
                     .block_size = block_sizes[turn % 3],
                     .bf16_parameters = turn % 2 == 0,
                     .columns = turn % 4 == 0 ? 7 : 2,
                     .more_topk = turn % 3,
                     .topk_gap = turn % 4,
                     .row_gap = turn % 3 == 0   ? 0
                                : turn % 3 == 1 ? 16
                                                : 5,
                     .page_gap = gap,
                     .offset = offset,
                     .guard = turn % 2 * 12,
                     .warm = turn % 3 != 0,
                     .negative = true});
    }
  }
  all.push_back({.tokens = 11,
                 .rows = 13,
                 .dims = 64,
                 .block_size = 3,
                 .bf16_parameters = true,
                 .columns = 5,
                 .topk_gap = 3,
                 .row_gap = 5,
                 .page_gap = 20,
                 .offset = 64,
                 .guard = 12,
                 .warm = true,
                 .negative = true,
                 .from = level::smoke});
  all.push_back({.tokens = 5, .dims = 32, .kind = slot_kind::sequential, .from = level::smoke});
  // Counts: tokens, rows of k, slots.
  all.push_back({.tokens = 6,
                 .rows = 4,
                 .slots = 4,
                 .dims = 32,
                 .block_size = 3,
                 .columns = 3,
                 .from = level::smoke});
  all.push_back({.tokens = 5,
                 .rows = 5,
                 .slots = 9,
                 .dims = 64,
                 .block_size = 3,
                 .more_topk = 2,
                 .warm = true,
                 .from = level::smoke});
  all.push_back({.tokens = 7, .rows = 9, .slots = 0, .dims = 32, .columns = 33});
  all.push_back({.tokens = 5, .dims = 32, .block_size = 3, .columns = 0, .from = level::smoke});
  all.push_back({.tokens = 0,
                 .rows = 3,
                 .slots = 3,
                 .dims = 32,
                 .block_size = 3,
                 .more_topk = 2,
                 .warm = true,
                 .from = level::smoke});
  all.push_back({.tokens = 0, .dims = 64});
  all.push_back({.tokens = 6,
                 .dims = 32,
                 .block_size = 3,
                 .warm = true,
                 .kind = slot_kind::all_negative,
                 .from = level::smoke});
  for (const std::int64_t block_size : block_sizes) {
    all.push_back(
        {.tokens = 33, .dims = 64, .block_size = block_size, .kind = slot_kind::sequential});
  }
  // Batch sizes and tokens a page.
  for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
    ++turn;
    for (const std::int64_t block_size : block_sizes) {
      ++turn;
      const bool large = tokens > 1000;
      all.push_back({.tokens = tokens,
                     .rows = tokens + turn % 2,
                     .dims = large ? 32 : key_widths[turn % 3],
                     .block_size = block_size,
                     .bf16_parameters = turn % 3 == 0,
                     .fnuz = fp8 && turn % 5 == 0,
                     .warps = warp_counts[turn % 4],
                     .columns = 1,
                     .page_gap = turn % 3 * 48,
                     .negative = turn % 2 == 0 && tokens > 4,
                     .from = large && block_size != 64 && block_size != 3 ? level::exhaustive
                                                                          : level::acceptance});
    }
  }
  return all;
}

void add_cases(std::vector<case_spec>& to, key_form form, std::string_view kernel,
               std::uint64_t seed) {
  const auto build_case = [form, kernel](const insert_options& o, const std::string& name,
                                         std::uint64_t s) {
    return build(form, kernel, o, name, s);
  };
  add_specs(
      to, kernel, seed, options_of(form), [](const insert_options& o) { return name_of(o); },
      [](const insert_options& o) { return flags_of(o); }, build_case);
}

}  // namespace

void add_mxfp4_k_norm_quant_insert_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  add_cases(to, key_form::mxfp4, "mxfp4_k_norm_quant_insert", seed);
}
void add_indexer_k_norm_quant_insert_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  add_cases(to, key_form::fp8, "indexer_k_norm_quant_insert", seed);
}

}  // namespace kvcts
