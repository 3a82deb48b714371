// Integer arguments that hang together: requests, their tokens, tables and entries.
#include <algorithm>

#include "conformance/cases/index_rows.h"
#include "conformance/cases/slots.h"
#include "fuzz/case.h"

namespace kvcts::fuzz_indices {
namespace {

using integer = std::int64_t;

integer named(const bindings& names, std::string_view name) { return names.find(name)->second; }

// i32 rows with the gaps that the knobs say.
void add_rows(const fuzz_case& c, const bindings& names, test_case& made, const std::string& name,
              integer rows, integer columns, const numbers& values) {
  draw from = draw_of(c, name, 1);
  made.inputs.push_back(i32_rows(from, name,
                                 {.rows = rows,
                                  .columns = columns,
                                  .gap = named(names, "gap_" + name),
                                  .offset = named(names, "offset_" + name),
                                  .guard = named(names, "guard")},
                                 values));
}

void add_list(const bindings& names, test_case& made, std::string_view name,
              const numbers& values) {
  made.inputs.push_back(i32_list(name, values, named(names, "guard")));
}

integer tokens_of(const fuzz_case& c) { return static_cast<integer>(c.tokens.size()); }

integer any_entry(draw& from, integer entries, integer size) {
  if (entries <= 0 || from.one_in(5)) return negative_index(from);
  return page_index(from, entries, size);
}

integer any_slot(draw& from, integer size) {
  return from.one_in(5) ? negative_index(from) : page_index(from, 9 * size, size);
}

}  // namespace

void gather(const fuzz_case& c, bindings& names, test_case& made) {
  const integer size = named(names, "block_size"), columns = named(names, "columns");
  numbers seq_lens, gather_lens, table;
  integer longest = 0;
  const bool all = named(names, "has_gather_lens") == 0;
  for (const std::uint32_t request : c.tokens) {
    draw from = draw_of(c, "request", request);
    const integer len = from.one_in(4) ? columns * size : from.between(0, columns * size);
    integer gathered = all || from.one_in(4) ? len : from.between(0, len);
    // Requests longer than a few pages say nothing more.
    if (!all) gathered = std::min<integer>(gathered, 70);
    longest = std::max(longest, gathered);
    seq_lens.push_back(len);
    gather_lens.push_back(gathered);
    for (integer i = 0; i < columns; ++i) {
      table.push_back(from.between(0, named(names, "blocks") - 1));
    }
  }
  names["M"] = named(names, "offset") + longest + named(names, "more_rows");
  add_list(names, made, "seq_lens", seq_lens);
  if (!all) add_list(names, made, "gather_lens", gather_lens);
  add_rows(c, names, made, "block_table", tokens_of(c), columns, table);
}

void global_topk(const fuzz_case& c, bindings& names, test_case& made) {
  const integer size = named(names, "block_size"), columns = named(names, "columns");
  const integer requests = named(names, "requests"), width = named(names, "K");
  numbers topk, of_token;
  buffer valid =
      make_buffer("is_valid_token", dtype::boolean, dense({tokens_of(c)}), named(names, "guard"));
  for (std::size_t t = 0; t < c.tokens.size(); ++t) {
    draw from = draw_of(c, "topk_indices", c.tokens[t]);
    of_token.push_back(from.between(0, requests - 1));
    *valid.view().element(static_cast<integer>(t)) = std::byte{!from.one_in(4)};
    for (integer i = 0; i < width; ++i) topk.push_back(any_entry(from, columns * size, size));
  }
  draw from = draw_of(c, "block_table");
  add_rows(c, names, made, "topk_indices", tokens_of(c), width, topk);
  add_list(names, made, "token_to_req_indices", of_token);
  add_rows(c, names, made, "block_table", requests, columns,
           table_entries(from, requests * columns, size, named(names, "negative") != 0,
                         named(names, "large") != 0));
  made.inputs.push_back(std::move(valid));
}

void combined(const fuzz_case& c, bindings& names, test_case& made) {
  draw from = draw_of(c, "requests");
  const integer padding = std::min(named(names, "padding"), tokens_of(c));
  const integer requests = named(names, "requests"), compressed = named(names, "N");
  const numbers queries =
      split(from, tokens_of(c) - padding, requests, named(names, "negative") != 0);
  numbers seq_lens, gather_lens;
  integer longest = 0;
  for (const integer n : queries) {
    const integer len = n + from.between(0, named(names, "context"));
    const integer exact = std::min(len, n + std::max<integer>(named(names, "window_size") - 1, 0));
    seq_lens.push_back(len);
    gather_lens.push_back(named(names, "gathered") == 0 ? exact : from.between(0, exact + 3));
    longest = std::max(longest, gather_lens.back());
  }
  names["M"] = compressed + longest + named(names, "more_M");
  const integer ratio = named(names, "compress_ratio");
  const integer columns = named(names, "spare") + (ratio == 0 ? 0 : named(names, "topk"));
  numbers indices;
  for (const std::uint32_t token : c.tokens) {
    draw row = draw_of(c, "topk_indices", token);
    for (integer i = 0; i < columns; ++i) {
      const integer past[] = {compressed, compressed + 1, INT32_MAX};
      indices.push_back(row.one_in(6) ? past[row.below(3)] : any_entry(row, compressed, 1));
    }
  }
  add_rows(c, names, made, "topk_indices", tokens_of(c), columns, indices);
  add_list(names, made, "query_start_loc", starts_of(queries, named(names, "first_start")));
  add_list(names, made, "seq_lens", seq_lens);
  add_list(names, made, "gather_lens", gather_lens);
}

void mixed(const fuzz_case& c, bindings& names, test_case& made) {
  draw from = draw_of(c, "requests");
  const integer decode = std::min(named(names, "decode"), tokens_of(c));
  const integer prefill = tokens_of(c) - decode;
  numbers queries(static_cast<std::size_t>(decode), 1);
  const numbers more = split(from, prefill, named(names, "requests"), false);
  queries.insert(queries.end(), more.begin(), more.end());
  numbers seq_lens, replay, of_token;
  integer longest = 1;
  for (std::size_t r = 0; r < queries.size(); ++r) {
    const integer len = queries[r] + from.between(0, named(names, "context"));
    longest = std::max(longest, len);
    seq_lens.push_back(len);
    const integer turn = named(names, "replay");
    replay.push_back(turn == 0 ? 0 : turn == 1 ? from.between(0, len) : len + from.between(0, 3));
    of_token.insert(of_token.end(), static_cast<std::size_t>(queries[r]), static_cast<integer>(r));
  }
  const auto requests = static_cast<integer>(queries.size());
  const integer size = named(names, "swa_block_size");
  const integer compressed_size = named(names, "compressed_block_size");
  const bool own_table = named(names, "has_compressed_block_table") != 0;
  const integer columns = (longest - 1) / size + 1;
  const integer compressed_columns = own_table ? 3 : columns;
  const integer entries = compressed_columns * compressed_size;

  enum form : std::uint8_t { absent, slots, slots_with_lens, local, local_with_lens };
  const auto how = static_cast<form>(named(names, "form"));
  const bool is_local = how == local || how == local_with_lens;
  names["decode_compressed_indices_are_local"] = is_local ? 1 : 0;
  const integer window = named(names, "window_size") + named(names, "wider");
  const integer width = named(names, "width"), prefill_width = named(names, "prefill_width");
  numbers window_slots, given, lens, topk;
  buffer valid =
      make_buffer("decode_is_valid_token", dtype::boolean, dense({decode}), named(names, "guard"));
  for (std::size_t t = 0; t < c.tokens.size(); ++t) {
    draw row = draw_of(c, "token", c.tokens[t]);
    if (static_cast<integer>(t) >= decode) {
      for (integer i = 0; i < prefill_width; ++i) {
        topk.push_back(any_entry(row, entries, compressed_size));
      }
      continue;
    }
    for (integer i = 0; i < window; ++i) window_slots.push_back(any_slot(row, size));
    for (integer i = 0; i < width; ++i) {
      given.push_back(is_local ? any_entry(row, entries, compressed_size)
                               : any_slot(row, compressed_size));
    }
    lens.push_back(row.between(0, width + 2));
    *valid.view().element(static_cast<integer>(t)) = std::byte{!row.one_in(4)};
  }
  add_rows(c, names, made, "decode_swa_indices", decode, window, window_slots);
  if (how != absent) add_rows(c, names, made, "decode_compressed_indices", decode, width, given);
  if (how == slots_with_lens || how == local_with_lens) {
    add_list(names, made, "decode_compressed_topk_lens", lens);
  }
  if (is_local) made.inputs.push_back(std::move(valid));
  add_rows(c, names, made, "prefill_topk_indices", prefill, prefill_width, topk);
  add_list(names, made, "query_start_loc", starts_of(queries));
  add_list(names, made, "seq_lens", seq_lens);
  add_list(names, made, "token_to_req_indices", of_token);
  add_list(names, made, "replay_start", replay);
  // Without a table of its own, the compressed KV counts in the window's pages.
  integer ids = std::max(size, named(names, "swa_block_span"));
  const integer compressed_ids = std::max(compressed_size, named(names, "compressed_block_span"));
  if (!own_table) ids = std::max(ids, compressed_ids);
  const bool negative = named(names, "negative") != 0;
  add_rows(c, names, made, "swa_block_table", requests, columns,
           table_entries(from, requests * columns, ids, negative, false));
  if (own_table) {
    add_rows(c, names, made, "compressed_block_table", requests, compressed_columns,
             table_entries(from, requests * compressed_columns, compressed_ids, negative, false));
  }
}

void compressed(const fuzz_case& c, bindings& names, test_case& made) {
  draw from = draw_of(c, "requests");
  const integer requests = named(names, "requests"), capacity = named(names, "capacity");
  const numbers queries = split(from, tokens_of(c), requests, named(names, "negative") != 0);
  const std::vector<integer> pages =
      draw_slots(from, requests, requests + 1, slot_kind::shuffled, false);
  std::vector<integer> positions, slots;
  numbers of_token;
  std::size_t t = 0;
  for (std::size_t r = 0; r < queries.size(); ++r) {
    const integer context = from.between(0, 9);
    for (integer i = 0; i < queries[r]; ++i, ++t) {
      draw token = draw_of(c, "token", c.tokens[t]);
      constexpr integer negatives[] = {-1, -7, INT64_MIN, -2};
      const integer slot = pages[r] * capacity + (context + i) % capacity;
      const bool none = named(names, "negative") != 0 && token.one_in(3);
      positions.push_back(context + i);
      slots.push_back(none ? negatives[token.below(4)] : slot);
      of_token.push_back(static_cast<integer>(r));
    }
  }
  positions.resize(static_cast<std::size_t>(named(names, "P")), -1);
  made.inputs.push_back(integers("positions", positions));
  made.inputs.push_back(integers("slot_mapping", slots));
  if (named(names, "has_query_start_loc") != 0) {
    add_list(names, made, "query_start_loc", starts_of(queries));
  }
  if (named(names, "has_token_to_req_indices") != 0) {
    add_list(names, made, "token_to_req_indices", of_token);
  }
}

}  // namespace kvcts::fuzz_indices
