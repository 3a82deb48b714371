// Cases of mxfp4_q_quant: index_q [T, H, 128] bf16, index_weights [T, H] bf16 or f32.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/build.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "mxfp4_q_quant";
constexpr std::int64_t dims = 128, block = 32;

enum class q_layout : std::uint8_t { dense, strided, unaligned, head_major };

struct q_options {
  std::int64_t tokens = 0, heads = 1, padded = 1;
  content what = content::mixed;
  q_layout layout = q_layout::dense;
  bool f32_weights = false;
  std::int64_t weight_gap = 0;  // elements between the rows of index_weights
  std::int64_t guard = 0;       // elements after the last one of both inputs
  int weight_scale = 0;         // of the table below
  level from = level::acceptance;
};

// Doubles, since callers pass doubles: not f32 numbers, a tie of two f32 numbers, a negative one, a
// zero, one that is an f32 subnormal, a large one.
constexpr double weight_scales[] = {
    0.011048543456039806, 0.08838834764831845, 1.0, 0x1.000003p0, -0.3, 0.0, 0x1.8p-130, 3.0e38};

extent query_extent(const q_options& o) {
  const std::vector<std::int64_t> shape = {o.tokens, o.heads, dims};
  switch (o.layout) {
    case q_layout::dense:
      return dense(shape);
    // Multiples of 16 bytes, as engines pass them.
    case q_layout::strided:
      return {shape, {o.heads * 144 + 64, 144, 1}, 32};
    case q_layout::unaligned:
      return {shape, {o.heads * 131 + 5, 131, 1}, 3};
    case q_layout::head_major:
      return {shape, {dims, o.tokens * dims + 16, 1}, 8};
  }
  return {};
}

test_case build(const q_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["weight_scale"] = weight_scales[o.weight_scale];
  made.attributes["padded_num_heads"] = o.padded;

  buffer q = make_buffer("index_q", dtype::bf16, query_extent(o), o.guard);
  const block_rules rules = e2m1_rules();
  std::int64_t number = 0;
  std::uint16_t values[block];
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    for (std::int64_t h = 0; h < o.heads; ++h) {
      for (std::int64_t d = 0; d < dims; d += block) {
        fill_block(from, o.what, rules, number++, values, block);
        std::memcpy(q.view().element(t, h, d), values, sizeof values);
      }
    }
  }

  const dtype weights_type = o.f32_weights ? dtype::f32 : dtype::bf16;
  buffer weights = make_buffer("index_weights", weights_type,
                               {{o.tokens, o.heads}, {o.heads + o.weight_gap, 1}, 0}, o.guard);
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    for (std::int64_t h = 0; h < o.heads; ++h) {
      const std::uint32_t bits = any_f32(from);
      std::byte* to = weights.view().element(t, h);
      if (o.f32_weights) {
        store(to, bits);
      } else {
        store(to, static_cast<std::uint16_t>(bits >> 16));
      }
    }
  }
  made.inputs.push_back(std::move(q));
  made.inputs.push_back(std::move(weights));
  return made;
}

std::string name_of(const q_options& o) {
  std::string name = fmt::format("t{}_h{}_p{}_{}", o.tokens, o.heads, o.padded, name_of(o.what));
  if (o.layout == q_layout::strided) name += "_strided";
  if (o.layout == q_layout::unaligned) name += "_unaligned";
  if (o.layout == q_layout::head_major) name += "_headmajor";
  if (o.f32_weights) name += "_wf32";
  if (o.weight_gap != 0) name += fmt::format("_wgap{}", o.weight_gap);
  if (o.weight_scale != 0) name += fmt::format("_ws{}", o.weight_scale);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of(const q_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) {
    add_flags(flags, {"EmptyBatch"});
  } else {
    add_flags(flags, flags_of(o.what));
  }
  if (o.padded > o.heads) add_flags(flags, {"PaddedHeads"});
  if ((o.heads & (o.heads - 1)) != 0) add_flags(flags, {"OddHeads"});
  if (o.layout != q_layout::dense) add_flags(flags, {"Strided"});
  if (o.layout == q_layout::unaligned) add_flags(flags, {"Unaligned"});
  if (o.layout == q_layout::head_major) add_flags(flags, {"HeadMajor"});
  if (o.f32_weights) add_flags(flags, {"F32Weights"});
  if (o.weight_gap != 0) add_flags(flags, {"StridedWeights"});
  if (o.weight_scale != 0) add_flags(flags, {"WeightScale"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_mxfp4_q_quant_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<q_options> all;

  // Each kind of content, on a few shapes.
  for (const content what : all_contents) {
    all.push_back({.tokens = 2, .heads = 3, .padded = 4, .what = what, .from = level::smoke});
    all.push_back({.tokens = 8, .heads = 20, .padded = 20, .what = what});
    all.push_back({.tokens = 5, .heads = 1, .padded = 8, .what = what, .f32_weights = true});
    all.push_back(
        {.tokens = 6, .heads = 3, .padded = 3, .what = what, .layout = q_layout::strided});
    all.push_back(
        {.tokens = 64, .heads = 64, .padded = 64, .what = what, .from = level::exhaustive});
  }
  // Layouts.
  int turn = 0;
  for (const q_layout layout :
       {q_layout::dense, q_layout::strided, q_layout::unaligned, q_layout::head_major}) {
    for (const std::int64_t heads : {1, 3, 20, 32}) {
      ++turn;
      all.push_back({.tokens = 7,
                     .heads = heads,
                     .padded = turn % 2 == 0 ? heads : heads + turn,
                     .layout = layout,
                     .f32_weights = turn % 3 == 0,
                     .weight_gap = turn % 4,
                     .guard = (turn % 3) * 8,
                     .from = heads == 3 ? level::smoke : level::acceptance});
    }
  }
  // More heads than 64, which 8 warps of 8 take at once.
  all.push_back({.tokens = 3, .heads = 65, .padded = 65});
  all.push_back({.tokens = 2, .heads = 150, .padded = 201, .f32_weights = true});
  // All of a warp's eight heads there.
  all.push_back({.tokens = 3, .heads = 64, .padded = 64});
  // Weights.
  for (int scale = 0; scale < static_cast<int>(std::size(weight_scales)); ++scale) {
    for (const bool f32 : {false, true}) {
      all.push_back({.tokens = 16,
                     .heads = 8,
                     .padded = 12,
                     .what = content::ordinary,
                     .f32_weights = f32,
                     .weight_gap = scale % 3,
                     .weight_scale = scale,
                     .from = scale == 3 ? level::smoke : level::acceptance});
    }
  }
  // Batch sizes around those where launches change, and every head count.
  turn = 0;
  for (const std::int64_t tokens : {0, 1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
    for (const std::int64_t heads : {1, 3, 20, 32, 64}) {
      ++turn;
      const std::int64_t padded[] = {heads, heads + 1, 64, 128};
      all.push_back({.tokens = tokens,
                     .heads = heads,
                     .padded = std::max(heads, padded[turn % 4]),
                     .f32_weights = turn % 2 == 0,
                     .from = tokens == 0 && heads == 3   ? level::smoke
                             : tokens * heads > 129 * 32 ? level::exhaustive
                                                         : level::acceptance});
    }
  }

  add_specs(
      to, kernel, seed, all, [](const q_options& o) { return name_of(o); },
      [](const q_options& o) { return flags_of(o); }, build);
}

}  // namespace kvcts
