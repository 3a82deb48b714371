// Cases of combine_topk_swa_indices: top-k rows [T, K] and windows of gathered KV.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/index_rows.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "combine_topk_swa_indices";

// Tokens of a request before its queries.
enum class context : std::uint8_t { none, some, missing, huge };
// Window entries that were gathered.
enum class window_gather : std::uint8_t { exact, other };

struct combine_options {
  std::int64_t tokens = 0, padding = 0;  // of requests, and of none
  std::int64_t requests = 1;
  bool empty = false;  // a request has no query
  std::int64_t window = 4, ratio = 2, topk = 3;
  std::int64_t spare = 0;        // columns of topk_indices past topk
  std::int64_t compressed = 40;  // N
  std::int64_t first_start = 0;  // query_start_loc[0]
  context before = context::some;
  window_gather gathered = window_gather::exact;
  bool large = false;                           // M: ids up to the largest i32
  std::int64_t gap = 0, offset = 0, guard = 0;  // of topk_indices, elements
  level from = level::acceptance;
};

numbers draw_seq_lens(draw& from, const combine_options& o, const numbers& queries) {
  numbers lens;
  for (const std::int64_t n : queries) {
    switch (o.before) {
      case context::none:
        lens.push_back(n);
        break;
      case context::some:
        lens.push_back(n +
                       from.between(0, 2 * o.window + o.topk * std::min<std::int64_t>(o.ratio, 8)));
        break;
      case context::missing:
        lens.push_back(from.between(0, n));
        break;
      case context::huge:
        lens.push_back(INT32_MAX - from.between(0, 4));
        break;
    }
  }
  return lens;
}

numbers draw_gather_lens(draw& from, const combine_options& o, const numbers& queries,
                         const numbers& seq_lens) {
  numbers lens;
  for (std::size_t r = 0; r < queries.size(); ++r) {
    // The queries' windows, as the engine gathers them.
    const std::int64_t exact =
        std::min(seq_lens[r], queries[r] + std::max<std::int64_t>(o.window - 1, 0));
    if (o.gathered == window_gather::exact) {
      lens.push_back(exact);
      continue;
    }
    const std::int64_t others[] = {0, from.between(0, exact), exact / 2,
                                   exact + from.between(1, 5)};
    lens.push_back(others[(r + from.below(2)) % std::size(others)]);
  }
  return lens;
}

std::int64_t draw_index(draw& from, const combine_options& o) {
  if (from.one_in(6)) return negative_index(from);
  if (o.compressed == 0 || from.one_in(6)) {
    const std::int64_t past[] = {o.compressed, o.compressed + 1, INT32_MAX};
    return past[from.below(std::size(past))];
  }
  if (from.one_in(6)) return from.one_in(2) ? 0 : o.compressed - 1;
  return from.between(0, o.compressed - 1);
}

test_case build(const combine_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  const numbers queries = split(from, o.tokens, o.requests, o.empty);
  const numbers seq_lens = draw_seq_lens(from, o, queries);
  const numbers gather_lens = draw_gather_lens(from, o, queries, seq_lens);
  // As many rows as a request takes, and a few more; or as many as ids allow.
  std::int64_t longest = 0;
  for (const std::int64_t len : gather_lens) longest = std::max(longest, len);
  std::int64_t rows = o.compressed + longest + 3;
  if (o.large) rows = (std::int64_t{INT32_MAX} - o.compressed - longest) / (o.requests - 1);

  test_case made;
  made.attributes["window_size"] = o.window;
  made.attributes["compress_ratio"] = o.ratio;
  made.attributes["topk"] = o.topk;
  made.attributes["M"] = rows;
  made.attributes["N"] = o.compressed;
  const std::int64_t tokens = o.tokens + o.padding;
  // No column is read where nothing is compressed.
  const std::int64_t columns = o.ratio == 0 ? o.spare : o.topk + o.spare;
  numbers indices;
  for (std::int64_t i = 0; i < tokens * columns; ++i) indices.push_back(draw_index(from, o));
  made.inputs.push_back(
      i32_rows(from, "topk_indices", {tokens, columns, o.gap, o.offset, o.guard}, indices));
  made.inputs.push_back(i32_list("query_start_loc", starts_of(queries, o.first_start), o.guard));
  made.inputs.push_back(i32_list("seq_lens", seq_lens, o.guard));
  made.inputs.push_back(i32_list("gather_lens", gather_lens, o.guard));
  return made;
}

std::string name_of_options(const combine_options& o) {
  std::string name = fmt::format("t{}_r{}_w{}_c{}_k{}_n{}", o.tokens, o.requests, o.window, o.ratio,
                                 o.topk, o.compressed);
  if (o.padding != 0) name += fmt::format("_pad{}", o.padding);
  if (o.empty) name += "_empty";
  if (o.spare != 0) name += fmt::format("_spare{}", o.spare);
  if (o.first_start != 0) name += fmt::format("_from{}", o.first_start);
  if (o.before == context::none) name += "_new";
  if (o.before == context::missing) name += "_missing";
  if (o.before == context::huge) name += "_huge";
  if (o.gathered == window_gather::other) name += "_part";
  if (o.large) name += "_large";
  if (o.gap != 0) name += fmt::format("_gap{}", o.gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of_options(const combine_options& o) {
  std::vector<std::string> flags;
  const bool topk = o.tokens > 0 && o.ratio > 0 && o.topk > 0;
  if (o.tokens + o.padding == 0) add_flags(flags, {"EmptyBatch"});
  if (o.padding != 0) add_flags(flags, {"PaddingTokens"});
  if (o.empty && o.requests > 1) add_flags(flags, {"EmptyRequest"});
  if (o.window + o.topk == 0) add_flags(flags, {"ZeroWidth"});
  if (o.ratio == 0) add_flags(flags, {"NoCompression"});
  if (topk) add_flags(flags, {"NegativeIndex", "PastCount"});
  if (o.spare != 0 && o.tokens > 0) add_flags(flags, {"UnreadColumns"});
  if (o.first_start != 0) add_flags(flags, {"OtherStart"});
  if (o.before == context::missing) add_flags(flags, {"NegativePosition"});
  if (o.before == context::huge) add_flags(flags, {"LongContext"});
  if (o.gathered == window_gather::other) add_flags(flags, {"PartialWindow"});
  if (o.large) add_flags(flags, {"LargeIds"});
  if (o.gap != 0 || o.offset != 0) add_flags(flags, {"Strided"});
  if (o.gap % 4 != 0 || o.offset % 4 != 0) add_flags(flags, {"Unaligned"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_combine_topk_swa_indices_cases(std::vector<case_spec>& to, std::uint64_t seed) {
  std::vector<combine_options> all;
  int turn = 0;
  // Contexts, gathers and ratios.
  for (const context before : {context::none, context::some, context::missing, context::huge}) {
    for (const window_gather gathered : {window_gather::exact, window_gather::other}) {
      for (const std::int64_t ratio : {0, 1, 2, 4, 128}) {
        ++turn;
        all.push_back({.tokens = 7,
                       .padding = turn % 3,
                       .requests = 1 + turn % 4,
                       .empty = turn % 2 == 0,
                       .window = ratio == 4 ? 1 : 5,
                       .ratio = ratio,
                       .topk = 6,
                       .spare = turn % 4,
                       .first_start = (turn % 3) * 11,
                       .before = before,
                       .gathered = gathered,
                       .from = ratio == 0 || ratio == 2 ? level::smoke : level::acceptance});
      }
    }
  }
  // Widths: top-k and window around multiples of 128, and none.
  for (const std::int64_t window : {0, 1, 127, 128}) {
    for (const std::int64_t topk : {0, 1, 64, 127, 128, 512}) {
      ++turn;
      all.push_back({.tokens = 5,
                     .padding = turn % 2,
                     .requests = 2,
                     .window = window,
                     .ratio = 1 + turn % 4,
                     .topk = topk,
                     .spare = turn % 3,
                     .compressed = turn % 5 == 0 ? 0 : 700,
                     .gathered = turn % 3 == 0 ? window_gather::other : window_gather::exact,
                     .from = window + topk == 0 ? level::smoke : level::acceptance});
    }
  }
  // Rows apart, guards, the largest ids.
  for (const std::int64_t gap : {0, 3, 4}) {
    for (const std::int64_t offset : {0, 1, 4}) {
      for (const bool large : {false, true}) {
        ++turn;
        all.push_back({.tokens = 6,
                       .padding = 1,
                       .requests = 3,
                       .empty = turn % 2 == 1,
                       .topk = 5,
                       .spare = turn % 2,
                       .compressed = 9,
                       .first_start = turn % 5,
                       .large = large,
                       .gap = gap,
                       .offset = offset,
                       .guard = (turn % 3) * 3,
                       .from = gap == 3 && offset == 1 ? level::smoke : level::acceptance});
      }
    }
  }
  // No token, no request, no column.
  all.push_back({.tokens = 0, .requests = 2, .guard = 4, .from = level::smoke});
  all.push_back({.tokens = 0, .requests = 0});
  all.push_back({.tokens = 0, .padding = 3, .requests = 0, .from = level::smoke});
  all.push_back({.tokens = 0, .padding = 2, .requests = 4, .first_start = 9});
  all.push_back({.tokens = 4, .requests = 2, .window = 3, .ratio = 0, .topk = 0});
  // Batches of one request, of a request a token, and between.
  for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
    for (const std::int64_t requests : {std::int64_t{1}, std::int64_t{3}, std::int64_t{17},
                                        std::min<std::int64_t>(tokens + 1, 130)}) {
      ++turn;
      all.push_back(
          {.tokens = tokens,
           .padding = turn % 4,
           .requests = requests,
           .empty = turn % 2 == 0,
           .window = 1 + (turn % 3) * 63,
           .ratio = turn % 5,
           .topk = 1 + (turn % 4) * 21,
           .spare = turn % 3,
           .compressed = 200,
           .first_start = turn % 3,
           .before = turn % 7 == 0 ? context::none : context::some,
           .gathered = turn % 4 == 0 ? window_gather::other : window_gather::exact,
           .from = tokens > 1000 && requests == 17 ? level::exhaustive : level::acceptance});
    }
  }
  add_specs(to, kernel, seed, all, name_of_options, flags_of_options, build);
}

}  // namespace kvcts
