// Cases of fused_q_kv_rmsnorm_quant: qr [T, Q] and kv [T, K] bf16; q becomes MXFP8 with swizzled
// scales.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/norm_rows.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "fused_q_kv_rmsnorm_quant";
constexpr std::int64_t block = 32;
constexpr double epsilons[] = {1e-6, 1e-5, 0.0, 1e-12, 0.25};

struct norm_options {
  std::int64_t tokens = 0, query_dims = 64, kv_dims = 64;  // T, Q, K
  norm_source source = norm_source::rows;
  content what = content::mixed;
  bool f32_query_weight = false, f32_kv_weight = false;
  int eps = 0;  // of epsilons
  std::int64_t row_gap = 0, guard = 0;
  level from = level::acceptance;
};

struct normed {
  buffer rows, weight;
};
normed draw_normed(draw& from, const norm_options& o, std::string_view rows_name,
                   std::string_view weight_name, std::int64_t dims, bool f32, norm_border border) {
  // The scale's own exponents reach from -126 to 126.
  const block_rules rules = e4m3_rules_down_to(fp8_format::e4m3fn, -126);
  const row_shape shape = {o.tokens, dims, o.row_gap, o.guard};
  // One launch covers both rows.
  const std::int64_t padded = next_power_of_two(std::max(o.query_dims, o.kv_dims));
  normed made;
  std::vector<std::uint32_t> weight;
  if (o.source == norm_source::parameters) {
    made.rows = draw_sign_rows(from, rows_name, shape);
    weight = draw_parameters(from, o.what, rules, dims, block);
  } else {
    made.rows =
        draw_rows(from, rows_name, shape, o.source, o.what, rules, block,
                  {.tree = tree_of(padded, 2, padded > 1024 ? 8 : 4), .eps = epsilons[o.eps]});
    weight = is_hard(o.source)
                 ? border_weight(from, made.rows, epsilons[o.eps], border, rules, block)
                 : draw_parameters(from, content::ordinary, rules, dims, block);
  }
  made.weight = parameter_buffer(weight_name, f32 ? dtype::f32 : dtype::bf16, weight);
  return made;
}

test_case build(const norm_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["eps"] = epsilons[o.eps];
  normed q = draw_normed(from, o, "qr", "q_weight", o.query_dims, o.f32_query_weight,
                         norm_border::code_by_bf16);
  normed kv =
      draw_normed(from, o, "kv", "kv_weight", o.kv_dims, o.f32_kv_weight, norm_border::bf16);
  for (buffer* b : {&q.rows, &kv.rows, &q.weight, &kv.weight}) {
    made.inputs.push_back(std::move(*b));
  }
  return made;
}

std::string name_of(const norm_options& o) {
  std::string name = fmt::format("t{}_q{}_kv{}_{}_{}", o.tokens, o.query_dims, o.kv_dims,
                                 name_of(o.source), name_of(o.what));
  if (o.f32_query_weight) name += "_qf32";
  if (o.f32_kv_weight) name += "_kvf32";
  if (o.eps != 0) name += fmt::format("_eps{}", o.eps);
  if (o.row_gap != 0) name += fmt::format("_rows{}", o.row_gap);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of(const norm_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) {
    add_flags(flags, {"EmptyBatch"});
  } else {
    add_flags(flags, flags_of(o.source, o.what));
  }
  if (o.f32_query_weight || o.f32_kv_weight) add_flags(flags, {"F32Weights"});
  if (o.tokens % 128 != 0) add_flags(flags, {"PaddedRows"});
  if (o.query_dims % 128 != 0) add_flags(flags, {"PaddedGroups"});
  if (std::max(o.query_dims, o.kv_dims) > 1024) add_flags(flags, {"WideLaunch"});
  if (o.row_gap != 0) add_flags(flags, {"Strided"});
  if (o.row_gap % 8 != 0) add_flags(flags, {"Unaligned"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_fused_q_kv_rmsnorm_quant_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<norm_options> all;
  int turn = 0;

  // Each kind of content, put past the norms (weights over rows of +-2^n, eps 0) and before them.
  for (const content what : all_contents) {
    for (const bool f32 : {false, true}) {
      ++turn;
      all.push_back({.tokens = f32 ? 1 : 2,
                     .query_dims = f32 ? 256 : 512,
                     .kv_dims = 64,
                     .source = norm_source::parameters,
                     .what = what,
                     .f32_query_weight = f32,
                     .f32_kv_weight = f32,
                     .eps = 2,
                     .from = f32 ? level::smoke : level::acceptance});
      all.push_back({.tokens = 9,
                     .query_dims = 128 + 32 * (turn % 4),
                     .kv_dims = 96 + turn % 7,
                     .what = what,
                     .f32_query_weight = f32,
                     .f32_kv_weight = turn % 3 == 0,
                     .eps = turn % 5,
                     .row_gap = turn % 3 * 8,
                     .guard = turn % 2 * 8,
                     .from = what == content::mixed && f32 ? level::smoke : level::acceptance});
      all.push_back({.tokens = 130,
                     .query_dims = 1536,
                     .kv_dims = 512,
                     .what = what,
                     .f32_query_weight = f32,
                     .from = level::exhaustive});
    }
  }
  // Widths on both sides of each launch size; sums whose order shows. One launch covers both rows:
  // the longer one sets it.
  constexpr std::int64_t widths[][2] = {
      {32, 1},     {32, 7},      {64, 512},   {96, 33},     {128, 128},  {256, 64},    {512, 576},
      {1024, 512}, {1024, 1025}, {1056, 512}, {1536, 512},  {2048, 64},  {2048, 2049}, {2080, 128},
      {64, 1100},  {64, 1024},   {160, 2048}, {3072, 1536}, {4096, 512}, {7168, 64}};
  for (const auto& [query_dims, kv_dims] : widths) {
    for (const norm_source source :
         {norm_source::rows, norm_source::hard_sum, norm_source::hard_squares}) {
      ++turn;
      const bool hard = source != norm_source::rows;
      const bool in_smoke =
          hard && (kv_dims == 1 || query_dims == 128 || query_dims == 1056 || kv_dims == 1100);
      all.push_back({.tokens = in_smoke ? 2 : 3,
                     .query_dims = query_dims,
                     .kv_dims = kv_dims,
                     .source = source,
                     .what = hard ? content::ordinary : content::mixed,
                     // Weights beside a border need all their bits.
                     .f32_query_weight = hard,
                     .f32_kv_weight = hard,
                     .eps = turn % 2,
                     .from = in_smoke ? level::smoke : level::acceptance});
      if (!hard) continue;
      all.push_back({.tokens = 12,
                     .query_dims = query_dims,
                     .kv_dims = kv_dims,
                     .source = source,
                     .what = content::ordinary,
                     .f32_query_weight = true,
                     .f32_kv_weight = true,
                     .from = level::exhaustive});
    }
  }
  // Row strides.
  for (const std::int64_t gap : {8, 64, 1, 5}) {
    ++turn;
    all.push_back({.tokens = 5,
                   .query_dims = 160,
                   .kv_dims = 96,
                   .f32_query_weight = turn % 2 == 0,
                   .row_gap = gap,
                   .guard = 12,
                   .from = gap == 8 || gap == 5 ? level::smoke : level::acceptance});
  }
  // Rows of the swizzle.
  for (const std::int64_t tokens :
       {0, 1, 2, 8, 31, 32, 33, 64, 127, 128, 129, 255, 257, 1023, 1024}) {
    for (const std::int64_t query_dims : {32, 128, 288}) {
      ++turn;
      const bool large = tokens > 1000;
      all.push_back({.tokens = tokens,
                     .query_dims = query_dims,
                     .kv_dims = large ? 1 : 1 + turn % 40,
                     .source = norm_source::rows,
                     .f32_kv_weight = turn % 2 == 0,
                     .from = (tokens == 0 || tokens == 33) && query_dims == 32 ? level::smoke
                             : tokens == 129 && query_dims == 32               ? level::smoke
                             : large && query_dims > 32                        ? level::exhaustive
                                                        : level::acceptance});
    }
  }
  // Rows that launchers share out between warps, of every type of weight.
  for (const std::int64_t query_dims : {768, 1536}) {
    for (const bool f32 : {false, true}) {
      all.push_back({.tokens = 2,
                     .query_dims = query_dims,
                     .kv_dims = 256,
                     .f32_query_weight = f32,
                     .f32_kv_weight = !f32});
    }
  }
  // Batches past that at which launchers give a row one warp; widths of every such launch.
  all.push_back({.tokens = 4097, .query_dims = 256, .kv_dims = 768, .f32_query_weight = true});
  all.push_back({.tokens = 4099, .query_dims = 1536, .kv_dims = 512, .f32_kv_weight = true});
  constexpr std::int64_t batch_widths[][2] = {
      {1536, 512}, {1280, 256}, {1024, 512}, {512, 256}, {256, 1024}};
  for (const auto& [query_dims, kv_dims] : batch_widths) {
    ++turn;
    all.push_back({.tokens = query_dims == 512 ? 4095 + 128 : 4096,
                   .query_dims = query_dims,
                   .kv_dims = kv_dims,
                   .source = norm_source::rows,
                   .f32_query_weight = turn % 2 == 0,
                   .f32_kv_weight = turn % 3 == 0,
                   .from = level::exhaustive});
  }
  add_specs(
      to, kernel, seed, all, [](const norm_options& o) { return name_of(o); },
      [](const norm_options& o) { return flags_of(o); },
      [](const norm_options& o, const std::string& name, std::uint64_t s) {
        return build(o, name, s);
      });
}

}  // namespace kvcts
