// Cases of compute_global_topk_indices_and_lens: topk_indices [T, K] through block tables.
#include <fmt/format.h>

#include "conformance/cases/index_rows.h"

namespace kvcts {
namespace {

constexpr std::string_view kernel = "compute_global_topk_indices_and_lens";

enum class index_kind : std::uint8_t { all, some_negative, none };  // none: all are negative

struct topk_options {
  std::int64_t tokens = 0, columns = 1;  // T, K
  std::int64_t requests = 1, pages = 3;  // R, columns of the table
  std::int64_t block_size = 4;
  index_kind kind = index_kind::some_negative;
  bool padding = false;                         // some tokens only pad the batch
  bool negative_page = false;                   // table entries below 0
  bool large = false;                           // ids up to the largest i32
  std::int64_t gap = 0, offset = 0, guard = 0;  // of topk_indices, elements
  std::int64_t table_gap = 0;
  level from = level::acceptance;
};

test_case build(const topk_options& o, const std::string& name, std::uint64_t seed) {
  draw from(seed_of(seed, kernel, name));
  test_case made;
  made.attributes["block_size"] = o.block_size;
  numbers indices, requests;
  std::vector<std::byte> valid;
  const std::int64_t entries = o.pages * o.block_size;
  for (std::int64_t t = 0; t < o.tokens; ++t) {
    // A token without indices may name a request that no table has.
    const bool blank = o.kind == index_kind::none || (o.kind != index_kind::all && t % 5 == 3);
    requests.push_back(blank && t % 2 == 1 ? (t % 4 == 1 ? -1 : o.requests + t)
                                           : from.between(0, o.requests - 1));
    valid.push_back(std::byte{!(o.padding && (t % 3 == 2 || t + 1 == o.tokens))});
    for (std::int64_t k = 0; k < o.columns; ++k) {
      const bool negative = blank || (o.kind == index_kind::some_negative && from.one_in(4));
      indices.push_back(negative ? negative_index(from) : page_index(from, entries, o.block_size));
    }
  }
  made.inputs.push_back(
      i32_rows(from, "topk_indices", {o.tokens, o.columns, o.gap, o.offset, o.guard}, indices));
  made.inputs.push_back(i32_list("token_to_req_indices", requests, o.guard));
  made.inputs.push_back(
      i32_rows(from, "block_table", {o.requests, o.pages, o.table_gap, o.table_gap % 4, o.guard},
               table_entries(from, o.requests * o.pages, o.block_size, o.negative_page, o.large)));
  buffer is_valid = make_buffer("is_valid_token", dtype::boolean, dense({o.tokens}), o.guard);
  std::copy(valid.begin(), valid.end(), is_valid.bytes.begin());
  made.inputs.push_back(std::move(is_valid));
  return made;
}

std::string name_of_options(const topk_options& o) {
  std::string name =
      fmt::format("t{}_k{}_r{}_p{}_b{}", o.tokens, o.columns, o.requests, o.pages, o.block_size);
  if (o.kind == index_kind::all) name += "_all";
  if (o.kind == index_kind::none) name += "_none";
  if (o.padding) name += "_pad";
  if (o.negative_page) name += "_negpage";
  if (o.large) name += "_large";
  if (o.gap != 0) name += fmt::format("_gap{}", o.gap);
  if (o.offset != 0) name += fmt::format("_off{}", o.offset);
  if (o.table_gap != 0) name += fmt::format("_tgap{}", o.table_gap);
  if (o.guard != 0) name += "_guard";
  return name;
}

std::vector<std::string> flags_of_options(const topk_options& o) {
  std::vector<std::string> flags;
  if (o.tokens == 0) add_flags(flags, {"EmptyBatch"});
  if (o.columns == 0) add_flags(flags, {"ZeroWidth"});
  const bool any = o.tokens > 0 && o.columns > 0;
  if (any && o.kind != index_kind::none) add_flags(flags, {"PageBorder"});
  if (any && o.kind == index_kind::some_negative) add_flags(flags, {"NegativeIndex"});
  if (any && (o.kind == index_kind::none || (o.kind != index_kind::all && o.tokens > 3))) {
    add_flags(flags, {"AllNegative"});
  }
  if (o.padding) add_flags(flags, {"PaddingTokens"});
  if (o.negative_page) add_flags(flags, {"NegativePage"});
  if (o.large) add_flags(flags, {"LargeIds"});
  if (o.gap != 0 || o.offset != 0) add_flags(flags, {"Strided"});
  if (o.gap % 4 != 0 || o.offset % 4 != 0) add_flags(flags, {"Unaligned"});
  if (o.table_gap != 0) add_flags(flags, {"StridedTables"});
  if (o.guard != 0) add_flags(flags, {"GuardBytes"});
  if (o.block_size == 1) add_flags(flags, {"OneTokenPage"});
  if (o.block_size == 3) add_flags(flags, {"OddBlockSize"});
  if (o.tokens >= 1000) add_flags(flags, {"LongBatch"});
  return flags;
}

}  // namespace

void add_compute_global_topk_indices_and_lens_cases(std::vector<case_spec>& to,
                                                    std::uint64_t seed) {
  constexpr std::int64_t block_sizes[] = {1, 3, 16, 64, 128, 256};
  std::vector<topk_options> all;
  int turn = 0;
  // Kinds of indices and table entries.
  for (const index_kind kind : {index_kind::all, index_kind::some_negative, index_kind::none}) {
    for (const bool negative_page : {false, true}) {
      for (const bool large : {false, true}) {
        for (const std::int64_t block_size : {1, 3, 64}) {
          ++turn;
          all.push_back({.tokens = 9,
                         .columns = 7,
                         .requests = 1 + turn % 4,
                         .pages = 3,
                         .block_size = block_size,
                         .kind = kind,
                         .padding = turn % 2 == 0,
                         .negative_page = negative_page,
                         .large = large,
                         .table_gap = turn % 3,
                         .from = block_size == 3 || (large && kind == index_kind::all)
                                     ? level::smoke
                                     : level::acceptance});
        }
      }
    }
  }
  // Rows apart, guards.
  for (const std::int64_t gap : {0, 1, 4}) {
    for (const std::int64_t offset : {0, 3, 4}) {
      for (const std::int64_t guard : {0, 5}) {
        ++turn;
        all.push_back({.tokens = 6,
                       .columns = 5,
                       .requests = 3,
                       .pages = 2,
                       .block_size = 16,
                       .padding = turn % 2 == 0,
                       .negative_page = true,
                       .gap = gap,
                       .offset = offset,
                       .guard = guard,
                       .table_gap = gap * 2,
                       .from = gap == 1 && offset != 4 ? level::smoke : level::acceptance});
      }
    }
  }
  // Nothing to do.
  all.push_back({.tokens = 0, .columns = 8, .guard = 4, .from = level::smoke});
  all.push_back({.tokens = 0, .columns = 0});
  all.push_back({.tokens = 5, .columns = 0, .padding = true, .guard = 4, .from = level::smoke});
  all.push_back({.tokens = 4, .columns = 3, .pages = 0, .kind = index_kind::none});
  // Sizes of batches and rows.
  for (const std::int64_t tokens : {1, 2, 8, 64, 127, 128, 129, 1023, 1024}) {
    for (const std::int64_t columns : {1, 33, 512, 2048}) {
      ++turn;
      all.push_back({.tokens = tokens,
                     .columns = columns,
                     .requests = 1 + turn % 5,
                     .pages = 1 + turn % 7,
                     .block_size = block_sizes[turn % std::size(block_sizes)],
                     .padding = tokens > 1 && turn % 2 == 0,
                     .negative_page = turn % 3 == 0,
                     .gap = turn % 4 == 0 ? 3 : 0,
                     .from = tokens == 8 && columns == 33       ? level::smoke
                             : tokens * columns > 64 * 1024 + 1 ? level::exhaustive
                                                                : level::acceptance});
    }
  }
  // Whole fours of at most 512 columns, past the batch at which launchers give a row one warp.
  for (const std::int64_t columns : {4, 132}) {
    all.push_back({.tokens = 2051,
                   .columns = columns,
                   .requests = 5,
                   .pages = 7,
                   .block_size = columns == 4 ? 3 : 64,
                   .padding = true,
                   .negative_page = true});
  }
  for (const std::int64_t columns : {2, 3, 31, 32, 127, 129, 1024, 1025}) {
    for (const std::int64_t block_size : block_sizes) {
      ++turn;
      all.push_back({.tokens = 3,
                     .columns = columns,
                     .requests = 2,
                     .pages = 5,
                     .block_size = block_size,
                     .padding = turn % 3 == 0,
                     .large = turn % 4 == 0});
    }
  }
  add_specs(to, kernel, seed, all, name_of_options, flags_of_options, build);
}

}  // namespace kvcts
