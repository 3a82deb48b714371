// Cases of fused_layout: rows of a weight, or of its scales, in another order.
#include <fmt/format.h>

#include "conformance/cases/build.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "fused_layout";

struct layout_options {
  std::string_view op = "q";
  std::int64_t heads = 1, head_dim = 32;
  std::int64_t groups = 1;  // o and o_chunk: N = groups * rows of a group
  std::vector<std::int64_t> further = {};
  dtype type = dtype::bf16;
  std::int64_t offset = 0;  // elements before the first row
  std::int64_t guard = 0;   // elements after the last row
  level from = level::acceptance;
};

std::int64_t rows_of(const layout_options& o) {
  return o.groups * o.heads * (o.op == "o_chunk" ? o.head_dim / 32 : o.head_dim);
}

test_case build(const layout_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["op"] = std::string(o.op);
  made.attributes["heads"] = o.heads;
  made.attributes["head_dim"] = o.head_dim;
  std::vector<std::int64_t> shape = {rows_of(o)};
  shape.insert(shape.end(), o.further.begin(), o.further.end());
  extent at = dense(shape);
  at.offset = o.offset;
  buffer x = make_buffer("x", o.type, std::move(at), o.guard);
  // Any bytes: signalling NaNs and every payload move as they are.
  for (std::byte& b : x.bytes) b = static_cast<std::byte>(from.below(256));
  made.inputs.push_back(std::move(x));
  return made;
}

std::string name_of_options(const layout_options& o) {
  std::string name =
      fmt::format("{}_h{}_d{}_g{}_{}", o.op, o.heads, o.head_dim, o.groups, name_of(o.type));
  for (const std::int64_t size : o.further) name += fmt::format("_x{}", size);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of_options(const layout_options& o) {
  std::vector<std::string> flags;
  if (o.op == "o_chunk") add_flags(flags, {"ChunkRows"});
  if (o.groups > 1) add_flags(flags, {"ManyGroups"});
  if ((o.heads & (o.heads - 1)) != 0) add_flags(flags, {"OddHeads"});
  if (!o.further.empty()) add_flags(flags, {"FurtherDims"});
  if (rows_of(o) == 0 || count(o.further) == 0) add_flags(flags, {"EmptyRows"});
  if (o.offset * static_cast<std::int64_t>(size_of(o.type)) % 16 != 0) {
    add_flags(flags, {"Unaligned"});
  }
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  return flags;
}

}  // namespace

void add_fused_layout_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  constexpr dtype types[] = {dtype::bf16,     dtype::i32,        dtype::u8,
                             dtype::f8e4m3fn, dtype::f8e4m3fnuz, dtype::f32};
  const std::vector<std::int64_t> further[] = {{5}, {}, {3, 2}, {16}, {1}, {7, 1, 3}};
  std::vector<layout_options> all;
  std::size_t turn = 0;
  for (const std::string_view op : {"q", "o", "o_chunk"}) {
    const bool q = op == "q";
    // Every dtype, with and without further dimensions.
    for (const dtype type : types) {
      ++turn;
      all.push_back({.op = op,
                     .heads = 3,
                     .head_dim = 64,
                     .groups = q ? 1 : 2,
                     .further = further[turn % std::size(further)],
                     .type = type,
                     .from = level::smoke});
      all.push_back({.op = op,
                     .heads = 4,
                     .head_dim = 96,
                     .groups = q ? 1 : 3,
                     .further = further[(turn + 3) % std::size(further)],
                     .type = type,
                     .offset = static_cast<std::int64_t>(turn % 5),
                     .guard = static_cast<std::int64_t>(turn % 3) * 9});
    }
    // Rows that start anywhere, guards.
    for (const std::int64_t offset : {1, 3, 8}) {
      ++turn;
      all.push_back({.op = op,
                     .heads = 2,
                     .head_dim = 32,
                     .further = {3},
                     .type = types[turn % std::size(types)],
                     .offset = offset,
                     .guard = 5,
                     .from = offset == 3 ? level::smoke : level::acceptance});
    }
    // Nothing to move.
    all.push_back(
        {.op = op, .heads = 2, .head_dim = 64, .further = {0}, .guard = 4, .from = level::smoke});
    if (!q) all.push_back({.op = op, .heads = 3, .groups = 0, .further = {4}, .guard = 4});
    // Heads and head dims.
    for (const std::int64_t heads : {1, 2, 5, 8, 9, 33, 64, 128}) {
      for (const std::int64_t head_dim : {16, 32, 48, 128, 192, 512, 1024}) {
        if (!q && head_dim % 32 != 0) continue;
        ++turn;
        const bool large = heads * head_dim > 16384;
        all.push_back(
            {.op = op,
             .heads = heads,
             .head_dim = head_dim,
             .groups = q ? 1 : 1 + static_cast<std::int64_t>(turn % 3),
             .further = large ? std::vector<std::int64_t>{2} : further[turn % std::size(further)],
             .type = types[turn % std::size(types)],
             .from = large ? level::exhaustive : level::acceptance});
      }
    }
  }
  add_specs(to, kernel, seed, all, name_of_options, flags_of_options, build);
}

}  // namespace kvcts
